/** Passes requests on to the server behind the gate and its answers back; what is long as a stream. */
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { pipeline } from 'node:stream/promises';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { HttpFailure } from '../errors.ts';
import { errorCode } from '../exclusive-file.ts';
import type { Lifecycle } from '../lifecycle.ts';
import { type Framing, framingOf } from '../middleware/framing.ts';
import type { RequestContext, RequestState } from '../middleware/request.ts';
import type { Secret } from '../secret.ts';
import { createAgent } from './agent.ts';
import { answerHeaders, framingHeaders, outgoingFraming, requestHeaders } from './headers.ts';
import { bareHost, viaHeader } from './loop.ts';
import { type ReadRequest, readState } from './state-header.ts';
import { targetAccess } from './target.ts';

/** Answers that say only that another will follow. None of ours sends one, and reading them costs time. */
const MAX_INTERIM = 16;

export interface ForwardTimeouts {
  /** Until the server has taken the connection. */
  readonly connectMs: number;
  /**
   * How long nothing may come from the server or be taken by it, how long its answer may take to begin, and, from then
   * on, to be whole.
   */
  readonly silenceMs: number;
  /** How long the answer to a batch, which is sent state by state, may take to be whole. */
  readonly batchMs: number;
}

/** Whose answer is sent while it is made. */
const BATCH_TARGET = /^\/v1\/systemone\/batch(?:\?|$)/;

export interface ForwardParts {
  /** Where the server is: scheme, host and port. */
  readonly upstream: URL;
  /** The server's own key, for what needs one. */
  readonly upstreamKey: Secret | undefined;
  readonly timeouts: ForwardTimeouts;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
}

/**
 * Returns the middleware that answers with what the server says. The target goes on byte by byte as it came; all else is
 * made of what was parsed.
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
      // Nothing that still comes on this connection is an answer to anybody.
      answer?.destroy();
      outgoing.destroy();
      throw error;
    } finally {
      // Of a body that is not wanted any more the rest is thrown away: the caller may be reading the answer already.
      req.unpipe(outgoing).resume();
      if (!outgoing.writableEnded) outgoing.destroy();
    }
  };
}

type Call = (ctx: RequestContext, read: ReadRequest, framing: Framing | undefined) => http.ClientRequest;

/** Returns what begins a request to the server. */
function caller({ upstream, upstreamKey, timeouts }: ForwardParts, name: string): Call {
  const { request } = upstream.protocol === 'https:' ? https : http;
  const agent = createAgent(upstream.protocol);
  const address = { protocol: upstream.protocol, host: bareHost(upstream), port: upstream.port };
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
    // Node would hide the headers of the answer beyond the thousandth.
    outgoing.maxHeadersCount = 0;
    return outgoing;
  };
}

interface Body {
  readonly read: ReadRequest;
  readonly framing: Framing | undefined;
}

/** Sends the body that was announced, and none where none was: what is beyond it ends both connections. */
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
      // Before this part is written.
      outgoing.destroy();
      req.destroy();
    });
    if (read.start.length > 0) outgoing.write(read.start);
    if (left === 0) outgoing.end();
    else req.pipe(outgoing);
  }
}

interface Limits extends ForwardTimeouts {
  /** From the beginning of the answer to its end. */
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
  // A server that says a little now and then is not silent, and yet its answer may never begin.
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

/** Returns a promise that is rejected with what goes wrong first: the caller, or the server. */
function firstFailure({ req, res, state }: RequestContext, outgoing: http.ClientRequest, log: Logger): Promise<never> {
  const failure = new Promise<never>((_, reject) => {
    let isCallerGone = false;
    const gone = (error?: Error) => {
      if (res.writableFinished) return;
      isCallerGone = true;
      // The HTTP server ends a body with a failure of its own, for example when its time is up.
      reject(error instanceof HttpFailure ? error : new HttpFailure('cancelled', 'the caller has gone'));
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
  // Whoever waits for it hears of it; when the answer is complete nobody does.
  failure.catch(() => {});
  return failure;
}

/**
 * Returns the failure that stands for the server's 401. The caller's key was right, so a 401 would tell the caller to
 * change what is not wrong.
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

/** The headers go out with the first bytes of the body if those are there, and alone if they are not. */
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
 * Whether an answer says how the request ended, and how long its body is. Node reads 000, 999 and a 101 that changes
 * nothing, which nobody could pass on; it reads codings before `chunked`, too, which it does not undo.
 */
function isPassable({ statusCode = 0, headers }: http.IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 600 && /^(chunked)?$/i.test(headers['transfer-encoding'] ?? '');
}
