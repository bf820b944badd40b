/** The open connections of the server and the answers that are under way on them. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Connection {
  readonly open: Set<ServerResponse>;
  /** The answer, finished or not, to the latest request. */
  latest?: ServerResponse;
}

export class Connections {
  readonly #connections = new Map<Socket, Connection>();
  #openAnswers = 0;
  #onFinished: (() => void)[] = [];

  /** How many answers are under way. */
  get openAnswers(): number {
    return this.#openAnswers;
  }

  add(socket: Socket): void {
    const connection: Connection = { open: new Set() };
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      this.#connections.delete(socket);
      // Node tells only the answer that is being written; those that wait for their turn behind it hear it from us.
      for (const answer of connection.open) if (answer.socket === null) answer.emit('close');
    });
  }

  /** Notes that a request came in on `socket`. */
  addAnswer(socket: Socket, answer: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (!connection) return;
    connection.latest = answer;
    connection.open.add(answer);
    this.#openAnswers += 1;
    answer.once('close', () => {
      connection.open.delete(answer);
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
