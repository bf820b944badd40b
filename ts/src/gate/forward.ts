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
import type { RequestContext, RequestState } from '../middleware/request.ts';
import { answerHeaders, requestHeaders } from './headers.ts';
import { readState } from './state-header.ts';

/** An idle connection is given up before the server does so, after 65 s: else one could be used that is being closed. */
const IDLE_MS = 30_000;

export interface ForwardTimeouts {
  /** Until the server has taken the connection. */
  readonly connectMs: number;
  /** How long nothing may come from the server or be taken by it, its answer above all. */
  readonly silenceMs: number;
}

export interface ForwardParts {
  /** Where the server is: scheme, host and port. */
  readonly upstream: URL;
  readonly timeouts: ForwardTimeouts;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
}

/** Returns the middleware that answers with what the server says. The target goes on byte by byte as it came. */
export function forward({ upstream, timeouts, lifecycle, log }: ForwardParts): Middleware<RequestState> {
  const { request, Agent } = upstream.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const address = {
    protocol: upstream.protocol,
    host: upstream.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: upstream.port,
  };
  return async (ctx) => {
    const { req } = ctx;
    const { headers, start, isWhole } = await readState(req);
    const outgoing = request({
      ...address,
      agent,
      method: req.method,
      path: req.url,
      headers: { ...requestHeaders(req, ctx.state.id), ...headers },
      timeout: timeouts.silenceMs,
    });
    limitTime(outgoing, timeouts);
    const failure = firstFailure(ctx, outgoing, log);
    try {
      flushSoon(outgoing);
      if (isWhole) outgoing.end(start);
      else {
        if (start.length > 0) outgoing.write(start);
        req.pipe(outgoing);
      }
      const [answer] = (await Promise.race([once(outgoing, 'response'), failure])) as [http.IncomingMessage];
      if (lifecycle.phase === 'draining') ctx.set('Connection', 'close');
      await Promise.race([passAnswer(ctx, answer), failure]);
    } finally {
      // Of a body that is not wanted any more the rest is thrown away: the caller may be reading the answer already.
      req.unpipe(outgoing).resume();
      if (!outgoing.writableEnded) outgoing.destroy();
    }
  };
}

function limitTime(outgoing: http.ClientRequest, { connectMs, silenceMs }: ForwardTimeouts): void {
  const giveUp = (ms: number) =>
    outgoing.destroy(new HttpFailure('upstream_timeout', `no answer from the server within ${ms / 1000} s`));
  const timer = setTimeout(giveUp, connectMs, connectMs);
  const stop = () => clearTimeout(timer);
  outgoing.once('close', stop);
  outgoing.once('socket', (socket) => (socket.connecting ? socket.once('connect', stop) : stop()));
  outgoing.once('timeout', () => giveUp(silenceMs));
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
      if (!(error instanceof HttpFailure)) log.warn({ id: state.id, cause: errorCode(error) }, 'the server failed');
      reject(error instanceof HttpFailure ? error : new HttpFailure('upstream_failed', 'the server cannot be reached'));
    };
    req.on('error', gone);
    res.once('close', gone);
    outgoing.on('error', failed);
    outgoing.once('upgrade', (_, socket) => {
      socket.destroy();
      failed(new Error('the server changed the protocol unasked'));
    });
    outgoing.once('response', (answer) => {
      answer.on('error', failed);
      if (!isFinal(answer)) outgoing.destroy(new Error('the server did not say how the request ended'));
    });
  });
  // Whoever waits for it hears of it; when the answer is complete nobody does.
  failure.catch(() => {});
  return failure;
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
    if (!message.headersSent && !message.destroyed) message.flushHeaders();
  });
}

/** Whether an answer says how the request ended. Node reads 000 and a 101 that changes nothing, and cannot pass them on. */
function isFinal({ statusCode = 0 }: http.IncomingMessage): boolean {
  return statusCode >= 200;
}
