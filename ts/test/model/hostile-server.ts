/** A web server whose behaviour a test sets. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on 127.0.0.1 that answers by path; a path without a handler gets 404. */
export class HostileServer {
  readonly url: string;
  readonly requests: string[] = [];
  readonly #handlers = new Map<string, Handler>();
  readonly #server;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.url = `http://127.0.0.1:${port}`;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const path = new URL(request.url ?? '/', this.url).pathname;
      this.requests.push(path);
      const handler = this.#handlers.get(path);
      if (handler === undefined) response.writeHead(404).end('not here');
      else handler(request, response);
    });
  }

  static async start(test: TestContext): Promise<HostileServer> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const hostile = new HostileServer(server);
    test.after(() => hostile.stop());
    return hostile;
  }

  on(path: string, handler: Handler): void {
    this.#handlers.set(path, handler);
  }

  /** Serves the whole `body` with an ETag, and answers 304 to a caller that already has it. */
  serve(path: string, body: string | Buffer, etag = `"${createHash('sha256').update(body).digest('hex')}"`): void {
    this.on(path, (request, response) => {
      response.setHeader('etag', etag);
      if (request.headers['if-none-match'] === etag) response.writeHead(304).end();
      else response.end(body);
    });
  }

  remove(path: string): void {
    this.#handlers.delete(path);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
