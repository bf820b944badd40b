/** The open connections of the server and the answers that are under way on them. */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly open: Set<ServerResponse>;
  /** The answer, finished or not, to the latest request. */
  latest?: ServerResponse;
}

/**
 * The most requests that may be under way on a connection. A caller that waits for answers sends no more. The requests
 * of one packet are answered at once, whether their answers are read or not, so 64 KiB of requests could make a hundred
 * times as many bytes of answers.
 */
export const MAX_PIPELINED = 64;

/**
 * The most open connections. Each takes about 10 KB and a descriptor. The number is far more than the queue holds,
 * since most connections are idle most of the time.
 */
const MAX_CONNECTIONS = 4096;
/** The descriptors that a process has open besides its connections. */
const OTHER_DESCRIPTORS = 100;

/**
 * Returns how many connections a process may have open at once, so that descriptors are left for everything else.
 *
 * @param descriptors - How many descriptors each connection takes.
 */
export function connectionLimit(descriptors: number): number {
  const [, limit = ''] = /^Max open files +(\d+)/m.exec(processLimits()) ?? [];
  const free = limit === '' ? MAX_CONNECTIONS * descriptors : Number(limit) - OTHER_DESCRIPTORS;
  return Math.max(1, Math.min(MAX_CONNECTIONS, Math.floor(free / descriptors)));
}

/** Returns the limits of this process as Linux writes them; empty elsewhere, where a process need not know them. */
function processLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

export class Connections {
  readonly #max: number;
  /** The connections without an open answer, the one that has been idle for longest first. */
  readonly #idle = new Set<Socket>();
  /** The connections with an answer that is complete and not taken, the one that has waited for longest first. */
  readonly #untaken = new Set<Socket>();
  readonly #connections = new Map<Socket, Connection>();
  #openAnswers = 0;
  #onFinished: (() => void)[] = [];

  /** The number of answers under way. */
  get openAnswers(): number {
    return this.#openAnswers;
  }

  /** @param max - How many connections may be open at once. */
  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Takes in a new connection. When that is one too many, the connection that has been idle for longest is closed, else
   * the one that has not taken its answer for longest: a caller that opens connections and asks nothing, or reads
   * nothing, shuts out no other caller. Returns whether a connection was closed.
   */
  add(socket: Socket): boolean {
    const connection: Connection = { open: new Set() };
    this.#connections.set(socket, connection);
    this.#idle.add(socket);
    socket.once('close', () => {
      this.#forget(socket);
      // Node emits `close` only on the answer that is being written; the answers that wait behind it get the event
      // here.
      for (const answer of connection.open) if (answer.socket === null) answer.emit('close');
    });
    if (this.#connections.size <= this.#max) return false;
    // Where all other connections are at work, the new one itself is closed.
    const [idle = socket] = this.#idle;
    const [untaken = socket] = this.#untaken;
    this.#drop(idle === socket ? untaken : idle);
    return true;
  }

  /** Closes a connection. It no longer counts from now on, although its descriptor is free only a moment later. */
  #drop(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    this.#connections.delete(socket);
    this.#idle.delete(socket);
    this.#untaken.delete(socket);
  }

  /** Notes that a request came in on `socket`. Returns whether to answer it: false when its connection has too many. */
  addAnswer(socket: Socket, answer: ServerResponse): boolean {
    const connection = this.#connections.get(socket);
    if (!connection) return true;
    if (connection.open.size >= MAX_PIPELINED) return false;
    connection.latest = answer;
    connection.open.add(answer);
    this.#idle.delete(socket);
    this.#openAnswers += 1;
    answer.once('prefinish', () => {
      if (isUntaken(answer) && this.#connections.has(socket)) this.#untaken.add(socket);
    });
    answer.once('close', () => {
      connection.open.delete(answer);
      this.#untaken.delete(socket);
      if (connection.open.size === 0 && this.#connections.has(socket)) this.#idle.add(socket);
      this.#openAnswers -= 1;
      if (this.#openAnswers === 0) for (const resolve of this.#onFinished.splice(0)) resolve();
    });
    return true;
  }

  /** Returns the answer, finished or not, to the latest request on `socket`. */
  latest(socket: Socket): ServerResponse | undefined {
    return this.#connections.get(socket)?.latest;
  }

  /** Resolves when no answer is under way. */
  async finished(): Promise<void> {
    if (this.#openAnswers > 0) await new Promise<void>((resolve) => this.#onFinished.push(resolve));
  }

  /** Closes the connections on which no byte has arrived: Node does not count them as idle. */
  closeUnused(): void {
    for (const socket of this.#connections.keys()) if (socket.bytesRead === 0) socket.destroy();
  }
}

/** Whether the system has not yet taken all bytes of a complete answer, which its reader should get. */
function isUntaken({ socket }: ServerResponse): boolean {
  return (socket?.writableLength ?? 0) > 0;
}

/**
 * Calls `onTimeout` once, when an answer is complete and its caller takes nothing of it for `timeoutMs`. An answer that
 * is sent while it is being made is watched over by its maker until it is complete.
 */
export function limitTaking(answer: ServerResponse, timeoutMs: number, onTimeout: () => void): void {
  answer.once('prefinish', () => {
    const { socket } = answer;
    if (socket === null || !isUntaken(answer)) return;
    // This time-out does not end a connection on which bytes still flow.
    socket.setTimeout(timeoutMs);
    answer.once('timeout', onTimeout);
    // The time-out is cleared before Node sets that of an idle connection: the next answer may take its time.
    answer.prependOnceListener('finish', () => socket.setTimeout(0));
  });
}
