/** The HTTP server around the app: its time-outs, its answer to requests that are not HTTP, and its orderly end. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type Koa from 'koa';
import type { Logger } from 'pino';
import { HttpFailure } from '../errors.ts';
import type { EngineSlot } from '../model/slot.ts';
import type { Address } from '../network/address.ts';
import { listen } from '../network/listen.ts';
import { closeServer } from '../network/socket-file.ts';
import type { Config } from '../settings/config.ts';
import type { Metrics } from '../stats/metrics.ts';
import { Connections, limitTaking } from './connections.ts';
import type { Lifecycle } from './lifecycle.ts';
import { type RequestState, requestId, requestIdHeaders } from './middleware/request.ts';

/** The times that a connection may take. */
export interface HttpTimeouts {
  /** The time until the headers are there. */
  readonly headersMs: number;
  /** The time until the body is there, counted from the first byte of the request. */
  readonly bodyMs: number;
  /** The time between two requests. */
  readonly keepAliveMs: number;
  /** How often `headersMs` and `bodyMs` are checked. */
  readonly checkMs: number;
}

/**
 * The time-outs of a server. Load balancers keep connections for 60 s: if the server closed its connections earlier,
 * the load balancers would use closed ones.
 */
export const DEFAULT_TIMEOUTS: HttpTimeouts = {
  headersMs: 10_000,
  bodyMs: 30_000,
  keepAliveMs: 65_000,
  checkMs: 1_000,
};

interface HttpServerParts {
  readonly app: Koa<RequestState>;
  readonly config: Pick<Config, 'drainDelayMs' | 'drainMs' | 'requestTimeoutMs'>;
  /** The slot whose engine is closed at the end. */
  readonly slot: Pick<EngineSlot, 'model'>;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'countResponse'>;
  readonly timeouts?: HttpTimeouts;
  /** How many connections may be open at once; see `connectionLimit`. */
  readonly maxConnections: number;
}

/** The shortest time between two lines of the log about too many connections. */
const TOO_MANY_EVERY_MS = 60_000;

export interface HttpServer {
  /**
   * Returns the address once the server listens.
   * @throws Refusal when the server cannot
   */
  listen<Wanted extends Address>(address: Wanted): Promise<Wanted>;
  /** Ends the server: accepted requests finish, then the engine closes. A second call awaits the first. */
  drain(): Promise<void>;
}

/** Returns a server that does not listen yet. */
export function createHttpServer({ timeouts = DEFAULT_TIMEOUTS, ...parts }: HttpServerParts): HttpServer {
  const { app, config, log, metrics, maxConnections } = parts;
  const connections = new Connections(maxConnections);
  const server = createServer({
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.bodyMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkMs,
    // Node's own answer to a request without a Host header carries no request id, so the app refuses such a request.
    requireHostHeader: false,
  });
  // By default Node would read a body by a header beyond the thousandth, but not show that header to the app. The bytes
  // of all headers are limited.
  server.maxHeadersCount = 0;
  const handle = app.callback();
  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    if (!connections.addAnswer(req.socket, res)) {
      if (!req.socket.destroyed) log.info('connection closed: too many requests on it at once');
      req.socket.destroy();
      return;
    }
    limitTaking(res, config.requestTimeoutMs, () => closeUntaken(res, config.requestTimeoutMs, log));
    handle(req, res);
  };
  let toldMs = Number.NEGATIVE_INFINITY;
  server.on('connection', (socket: Socket) => {
    if (!connections.add(socket) || performance.now() - toldMs < TOO_MANY_EVERY_MS) return;
    toldMs = performance.now();
    log.warn({ connections: maxConnections }, 'too many connections: those that have been idle for longest are closed');
  });
  server.on('request', onRequest);
  // An unknown expectation is ignored, as HTTP allows; Node would refuse it without a request id.
  server.on('checkExpectation', onRequest);
  server.on('clientError', (error, socket: Socket) => {
    answerClientError({ error, socket, timeouts, log, metrics, latest: connections.latest(socket) });
  });
  let drained: Promise<void> | undefined;
  return {
    async listen(address) {
      const bound = await listen(server, address);
      // A connection that cannot be taken, for example for want of descriptors, must not end the others.
      server.on('error', (err) => log.error({ err }, 'a connection could not be taken'));
      return bound;
    },
    drain: () => (drained ??= drain(server, connections, parts)),
  };
}

/** Closes the connection of an answer that is not taken: until then its bytes lie in memory. */
function closeUntaken(answer: ServerResponse, timeoutMs: number, log: Logger): void {
  const told = { id: answer.getHeader('x-request-id'), code: 'answer_timeout' };
  log.warn(told, `connection closed: the caller took none of its answer for ${timeoutMs} ms (request_timeout_ms)`);
  answer.destroy();
}

type DrainParts = Pick<HttpServerParts, 'config' | 'slot' | 'lifecycle' | 'log'>;

async function drain(server: Server, connections: Connections, { config, slot, lifecycle, log }: DrainParts) {
  lifecycle.advance('stopping');
  await sleep(config.drainDelayMs);
  lifecycle.advance('draining');
  // This closes the listener and the idle connections; the promise resolves when the last connection is closed.
  const closed = new Promise<void>((resolve) => closeServer(server, resolve));
  connections.closeUnused();
  await Promise.race([connections.finished(), sleep(config.drainMs, undefined, { ref: false })]);
  const requests = connections.openAnswers;
  if (requests > 0) log.warn({ requests }, 'drain_ms is over, open requests are cut off');
  server.closeAllConnections();
  // The engine closes only when it knows of every caller that was cut off.
  await Promise.all([closed, connections.finished()]);
  await slot.model?.engine.close();
}

interface ClientError {
  readonly error: NodeJS.ErrnoException;
  readonly socket: Socket;
  readonly latest: ServerResponse | undefined;
  readonly timeouts: HttpTimeouts;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'countResponse'>;
}

/** The codes of the parser or the socket when the caller has ended the connection in the middle of a request. */
const GONE: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE']);

/** Answers a request that the HTTP parser refused, or waited for in vain, where an answer can still be given. */
function answerClientError({ error, socket, latest, timeouts, log, metrics }: ClientError): void {
  const isGone = GONE.has(error.code) || socket.readableEnded || !socket.writable;
  // A connection on which nothing was asked also ends without an answer.
  if (isGone || socket.bytesRead === 0) socket.destroy();
  else if (latest?.req.complete === false) failBody(latest, clientFailure(error, true, timeouts));
  else if (latest?.writableEnded === false) endAfter(latest);
  else refuse(socket, clientFailure(error, false, timeouts), { log, metrics });
}

/**
 * Passes a failure of the body to the app, which answers it while it reads the body; else the app has answered already,
 * or is about to.
 */
function failBody(answer: ServerResponse, failure: HttpFailure): void {
  const { req } = answer;
  if (answer.headersSent) req.socket.destroy();
  else if (req.listenerCount('error') > 0) req.emit('error', failure);
  else {
    // The fault arrived together with the request, so the app has not run yet.
    answer.setHeader('Connection', 'close');
    setImmediate(() => {
      if (answer.headersSent) return;
      if (req.listenerCount('error') > 0) req.emit('error', failure);
      else req.socket.destroy();
    });
  }
}

/** Lets the request before the faulty one get its answer, as the last one on its connection. */
function endAfter(answer: ServerResponse): void {
  if (!answer.headersSent) answer.setHeader('Connection', 'close');
}

function refuse(socket: Socket, failure: HttpFailure, { log, metrics }: Pick<ClientError, 'log' | 'metrics'>): void {
  const id = requestId(undefined);
  metrics.countResponse(failure.status);
  log.info({ id, status: failure.status, code: failure.code }, 'request refused');
  socket.end(rawAnswer(failure, id), () => socket.destroy());
}

function clientFailure(error: NodeJS.ErrnoException, inBody: boolean, timeouts: HttpTimeouts): HttpFailure {
  const close = { Connection: 'close' };
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return inBody
      ? new HttpFailure('body_timeout', `body did not arrive within ${timeouts.bodyMs / 1000} s`, close)
      : new HttpFailure('headers_timeout', `headers did not arrive within ${timeouts.headersMs / 1000} s`, close);
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    return new HttpFailure('headers_too_large', 'request headers too large', close);
  }
  return new HttpFailure('bad_request', 'malformed HTTP request', close);
}

/** Returns the text of an HTTP answer for a request that never reached the app. */
function rawAnswer({ status, message, headers }: HttpFailure, id: string): string {
  const all = {
    ...headers,
    ...requestIdHeaders(id),
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(message),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${message}`;
}
