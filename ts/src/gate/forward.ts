/** Forwards requests to the server behind the gate and its answers back; long bodies are streamed. */
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { pipeline } from 'node:stream/promises';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { callerGone, HttpFailure } from '../errors.ts';
import { errorCode } from '../files/system-error.ts';
import { socketOf } from '../network/reach.ts';
import type { Lifecycle } from '../server/lifecycle.ts';
import { type Framing, framingOf } from '../server/middleware/framing.ts';
import type { RequestContext, RequestState } from '../server/middleware/request.ts';
import type { Secret } from '../settings/secret.ts';
import { createAgent } from './agent.ts';
import { answerHeaders, framingHeaders, outgoingFraming, requestHeaders } from './headers.ts';
import { bareHost, viaHeader } from './loop.ts';
import { type ReadRequest, readState } from './state-header.ts';
import { targetAccess } from './target.ts';

/**
 * The most interim answers, which only announce another one, that the gate reads. This project's server sends none, and
 * reading them costs time.
 */
const MAX_INTERIM = 16;

export interface ForwardTimeouts {
  /** The longest time until the server has accepted the connection. */
  readonly connectMs: number;
  /**
   * The longest time without data to or from the server, also the longest time until its answer begins, and, from then
   * on, until the answer is complete.
   */
  readonly silenceMs: number;
  /** The longest time until the answer to a batch, which is sent state by state, is complete. */
  readonly batchMs: number;
}

/** The target whose answer is sent while it is made. */
const BATCH_TARGET = /^\/v1\/systemone\/batch(?:\?|$)/;

export interface ForwardParts {
  /** The address of the server: scheme, host and port, or a socket. */
  readonly upstream: URL;
  /** The server's own key, for targets that need one. */
  readonly upstreamKey: Secret | undefined;
  readonly timeouts: ForwardTimeouts;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
}

/**
 * Returns the middleware that answers with the server's response. The target is forwarded byte by byte as received; the
 * rest of the request is rebuilt from its parsed form.
 *
 * @param name - The gate's name in `Via`.
 */
export function forward(parts: ForwardParts, name: string): Middleware<RequestState> {
  const { timeouts, lifecycle, log } = parts;
  const call = caller(parts, name);
  return async (ctx) => {
    const { req } = ctx;
    const framing = outgoingFraming(req.method, framingOf(req));
    const read = await readState(req);
    const outgoing = call(ctx, read, framing);
    const wholeMs = BATCH_TARGET.test(req.url ?? '') ? timeouts.batchMs : timeouts.silenceMs;
    limitTime(outgoing, { ...timeouts, wholeMs });
    const failure = firstFailure(ctx, outgoing, log);
    let answer: http.IncomingMessage | undefined;
    try {
      sendBody(req, outgoing, { read, framing });
      [answer] = (await Promise.race([once(outgoing, 'response'), failure])) as [http.IncomingMessage];
      if (answer.statusCode === 401) throw refusedKey(ctx, parts);
      if (lifecycle.phase === 'draining') ctx.set('Connection', 'close');
      await Promise.race([passAnswer(ctx, answer), failure]);
    } catch (error) {
      // Data that still arrives on this connection belongs to no request.
      answer?.destroy();
      outgoing.destroy();
      throw error;
    } finally {
      // The rest of an unwanted body is discarded, because the caller may be reading the answer already.
      req.unpipe(outgoing).resume();
      if (!outgoing.writableEnded) outgoing.destroy();
    }
  };
}

type Call = (ctx: RequestContext, read: ReadRequest, framing: Framing | undefined) => http.ClientRequest;

/** Returns a function that begins a request to the server. */
function caller({ upstream, upstreamKey, timeouts }: ForwardParts, name: string): Call {
  const { request } = upstream.protocol === 'https:' ? https : http;
  const agent = createAgent(upstream.protocol);
  const address = endOf(upstream);
  return ({ req, state }, read, framing) => {
    const key = targetAccess(req.url ?? '') === 'keyed' ? upstreamKey?.reveal() : undefined;
    const own = { requestId: state.id, via: viaHeader(req, name), key };
    const outgoing = request({
      ...address,
      agent,
      method: req.method,
      path: req.url,
      headers: {
        ...requestHeaders(req, own),
        ...read.headers,
        ...framingHeaders(read.isWhole ? read.start.length : framing),
      },
      timeout: timeouts.silenceMs,
    });
    // By default, Node would hide the headers of the answer beyond the thousandth.
    outgoing.maxHeadersCount = 0;
    return outgoing;
  };
}

/** Returns the options of requests to the server behind the gate that say where it is. */
function endOf(upstream: URL): http.RequestOptions {
  const socketPath = socketOf(upstream);
  if (socketPath !== undefined) return { socketPath };
  return { protocol: upstream.protocol, host: bareHost(upstream), port: upstream.port };
}

interface Body {
  readonly read: ReadRequest;
  readonly framing: Framing | undefined;
}

/** Sends the body that was announced, or none if none was; bytes beyond the announced length end both connections. */
function sendBody(req: http.IncomingMessage, outgoing: http.ClientRequest, { read, framing }: Body): void {
  flushSoon(outgoing);
  if (read.isWhole) outgoing.end(read.start);
  else if (framing === undefined) {
    req.resume();
    outgoing.end();
  } else {
    let left = framing === 'chunked' ? Number.POSITIVE_INFINITY : framing - read.start.length;
    req.on('data', (part: Buffer) => {
      left -= part.length;
      if (left >= 0) return;
      // Both connections end before this part is written.
      outgoing.destroy();
      req.destroy();
    });
    if (read.start.length > 0) outgoing.write(read.start);
    if (left === 0) outgoing.end();
    else req.pipe(outgoing);
  }
}

interface Limits extends ForwardTimeouts {
  /** The longest time from the beginning of the answer to its end. */
  readonly wholeMs: number;
}

function limitTime(outgoing: http.ClientRequest, { connectMs, silenceMs, wholeMs }: Limits): void {
  const giveUp = (ms: number, what = 'no answer from the server') =>
    outgoing.destroy(new HttpFailure('upstream_timeout', `${what} within ${ms / 1000} s`));
  let timer = setTimeout(giveUp, connectMs, connectMs);
  const stop = () => clearTimeout(timer);
  outgoing.once('close', stop);
  outgoing.once('socket', (socket) => (socket.connecting ? socket.once('connect', stop) : stop()));
  outgoing.once('timeout', () => giveUp(silenceMs));
  // A server that sends a little now and then is not silent, yet its answer may never begin.
  const wait = () => {
    stop();
    timer = setTimeout(giveUp, silenceMs, silenceMs);
  };
  outgoing.once('finish', wait);
  outgoing.once('response', (answer) => {
    outgoing.off('finish', wait);
    stop();
    timer = setTimeout(giveUp, wholeMs, wholeMs, 'the answer of the server was not whole');
    answer.once('end', stop);
  });
}

/** Returns a promise that is rejected with the first failure, of the caller or of the server. */
function firstFailure({ req, res, state }: RequestContext, outgoing: http.ClientRequest, log: Logger): Promise<never> {
  const failure = new Promise<never>((_, reject) => {
    let isCallerGone = false;
    const gone = (error?: Error) => {
      if (res.writableFinished) return;
      isCallerGone = true;
      // The HTTP server may end a body with a failure of its own, for example its timeout.
      reject(error instanceof HttpFailure ? error : callerGone());
      outgoing.destroy();
    };
    const failed = (error: Error) => {
      if (isCallerGone) return;
      const cause = errorCode(error) || error.message;
      if (!(error instanceof HttpFailure)) log.warn({ id: state.id, cause }, 'the server failed');
      reject(error instanceof HttpFailure ? error : new HttpFailure('upstream_failed', 'the server cannot be reached'));
    };
    req.on('error', gone);
    res.once('close', gone);
    outgoing.on('error', failed);
    outgoing.once('upgrade', (_, socket) => {
      socket.destroy();
      failed(new Error('the server changed the protocol unasked'));
    });
    let interim = 0;
    outgoing.on('information', () => {
      interim += 1;
      if (interim > MAX_INTERIM) outgoing.destroy(new Error('the server says again and again that it will answer'));
    });
    outgoing.once('response', (answer) => {
      answer.on('error', failed);
      if (!isPassable(answer)) outgoing.destroy(new Error('the server sent an answer that cannot be passed on'));
    });
  });
  // The code that waits for this promise handles its rejection; after a complete answer none does, so it is handled
  // here.
  failure.catch(() => {});
  return failure;
}

/**
 * Returns the failure in place of the server's 401. The caller's key was right, so a 401 would tell the caller to
 * change the wrong thing.
 */
function refusedKey({ state }: RequestContext, { log, upstreamKey }: ForwardParts): HttpFailure {
  const message = 'the server behind the gate refuses the key of the gate';
  const why = upstreamKey === undefined ? 'it has none: set GATE_UPSTREAM_KEY' : 'GATE_UPSTREAM_KEY is not its key';
  log.error({ id: state.id }, `${message}: ${why}`);
  return new HttpFailure('upstream_refused', message);
}

async function passAnswer(ctx: RequestContext, answer: http.IncomingMessage): Promise<void> {
  const { res } = ctx;
  ctx.set(answerHeaders(answer));
  res.statusCode = answer.statusCode ?? 502;
  ctx.respond = false;
  flushSoon(res);
  await pipeline(answer, res);
}

/** Sends the headers together with the first bytes of the body if these are available at once, or else alone. */
function flushSoon(message: http.OutgoingMessage): void {
  setImmediate(() => {
    if (message.headersSent || message.destroyed) return;
    try {
      message.flushHeaders();
    } catch (error) {
      message.destroy(error as Error);
    }
  });
}

/**
 * Whether an answer states how the request ended and how long its body is. Node also accepts the statuses 000 and 999
 * and a 101 that changes nothing, which cannot be passed on, and codings before `chunked`, which it does not decode.
 */
function isPassable({ statusCode = 0, headers }: http.IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 600 && /^(chunked)?$/i.test(headers['transfer-encoding'] ?? '');
}
