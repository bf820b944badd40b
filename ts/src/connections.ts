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
 * How many requests may be under way on a connection. Nobody who waits for answers asks for more; what comes in one packet
 * is answered at once, read or not, so that 64 KiB of requests could make a hundred times as many bytes of answers.
 */
export const MAX_PIPELINED = 64;

/** Each takes about 10 KB and a descriptor. Far more than the queue holds: most connections are idle most of the time. */
const MAX_CONNECTIONS = 4096;
/** What a process has open beside its connections. */
const OTHER_DESCRIPTORS = 100;

/**
 * Returns how many connections a process may have open at once, so that descriptors are left for all else.
 *
 * @param descriptors - How many each of them takes.
 */
export function connectionLimit(descriptors: number): number {
  const [, limit = ''] = /^Max open files +(\d+)/m.exec(processLimits()) ?? [];
  const free = limit === '' ? MAX_CONNECTIONS * descriptors : Number(limit) - OTHER_DESCRIPTORS;
  return Math.max(1, Math.min(MAX_CONNECTIONS, Math.floor(free / descriptors)));
}

/** Returns the limits of this process as Linux writes them; elsewhere nothing, where a process has no need to know them. */
function processLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

export class Connections {
  readonly #max: number;
  /** The connections without an open answer, those first that have been so for longest. */
  readonly #idle = new Set<Socket>();
  /** The connections with an answer that is whole and not taken, those first that have been so for longest. */
  readonly #untaken = new Set<Socket>();
  readonly #connections = new Map<Socket, Connection>();
  #openAnswers = 0;
  #onFinished: (() => void)[] = [];

  /** How many answers are under way. */
  get openAnswers(): number {
    return this.#openAnswers;
  }

  /** @param max - How many may be open at once. */
  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Takes in a new connection. When that is one too many, the one that has been idle for longest is closed, else the one
   * that has not taken its answer for longest: whoever opens connections and asks nothing, or reads nothing, shuts out
   * nobody. Returns whether one was closed.
   */
  add(socket: Socket): boolean {
    const connection: Connection = { open: new Set() };
    this.#connections.set(socket, connection);
    this.#idle.add(socket);
    socket.once('close', () => {
      this.#forget(socket);
      // Node tells only the answer that is being written; those that wait for their turn behind it hear it from us.
      for (const answer of connection.open) if (answer.socket === null) answer.emit('close');
    });
    if (this.#connections.size <= this.#max) return false;
    // It is the new one itself where all others are at work.
    const [idle = socket] = this.#idle;
    const [untaken = socket] = this.#untaken;
    this.#drop(idle === socket ? untaken : idle);
    return true;
  }

  /** Its descriptor is free a moment later; it counts no more at once. */
  #drop(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    this.#connections.delete(socket);
    this.#idle.delete(socket);
    this.#untaken.delete(socket);
  }

  /** Notes that a request came in on `socket`. Returns whether it is to be answered: not one too many on its connection. */
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

  /** Closes the connections on which nothing was ever asked: Node does not count them as idle. */
  closeUnused(): void {
    for (const socket of this.#connections.keys()) if (socket.bytesRead === 0) socket.destroy();
  }
}

/** Whether not all of an answer that is whole has been taken by the system yet, for its reader. */
function isUntaken({ socket }: ServerResponse): boolean {
  return (socket?.writableLength ?? 0) > 0;
}

/**
 * Calls `onTimeout`, once, when an answer is whole and its caller takes nothing of it for `timeoutMs`. Answers that are
 * sent while they are made are their maker's until then.
 */
export function limitTaking(answer: ServerResponse, timeoutMs: number, onTimeout: () => void): void {
  answer.once('prefinish', () => {
    const { socket } = answer;
    if (socket === null || !isUntaken(answer)) return;
    // It does not end a connection on which bytes still go.
    socket.setTimeout(timeoutMs);
    answer.once('timeout', onTimeout);
    // Before Node sets the time of an idle connection: the next answer may take its time.
    answer.prependOnceListener('finish', () => socket.setTimeout(0));
  });
}
