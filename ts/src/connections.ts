/** The open connections of the server and the answers that are under way on them. */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly open: Set<ServerResponse>;
  /** The answer, finished or not, to the latest request. */
  latest?: ServerResponse;
}

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
   * Takes in a new connection. When that is one too many, the one that has been idle for longest is closed: whoever opens
   * connections and asks nothing shuts out nobody. Returns whether one was closed.
   */
  add(socket: Socket): boolean {
    const connection: Connection = { open: new Set() };
    this.#connections.set(socket, connection);
    this.#idle.add(socket);
    socket.once('close', () => {
      this.#connections.delete(socket);
      this.#idle.delete(socket);
      // Node tells only the answer that is being written; those that wait for their turn behind it hear it from us.
      for (const answer of connection.open) if (answer.socket === null) answer.emit('close');
    });
    if (this.#connections.size <= this.#max) return false;
    // It is the new one itself where all others are at work.
    const [longest] = this.#idle;
    if (longest) this.#drop(longest);
    return true;
  }

  /** Its descriptor is free a moment later; it counts no more at once. */
  #drop(socket: Socket): void {
    this.#connections.delete(socket);
    this.#idle.delete(socket);
    socket.destroy();
  }

  /** Notes that a request came in on `socket`. */
  addAnswer(socket: Socket, answer: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.latest = answer;
    connection.open.add(answer);
    this.#idle.delete(socket);
    this.#openAnswers += 1;
    answer.once('close', () => {
      connection.open.delete(answer);
      if (connection.open.size === 0 && this.#connections.has(socket)) this.#idle.add(socket);
      this.#openAnswers -= 1;
      if (this.#openAnswers === 0) for (const resolve of this.#onFinished.splice(0)) resolve();
    });
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
