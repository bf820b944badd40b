/**
 * The outermost middleware: it gives every request its id, every error its response, and every request its line in the
 * log.
 */
import { randomUUID } from 'node:crypto';
import process from 'node:process';
import type { Middleware, ParameterizedContext } from 'koa';
import type { Logger } from 'pino';
import type { Timing } from '../../engine/contract.ts';
import { type ErrorCode, errorBody, HttpFailure, toHttpFailure } from '../../errors.ts';
import type { Metrics } from '../../stats/metrics.ts';
import type { RequestSpan, RequestTracer } from '../../telemetry/request-tracer.ts';
import { TRACE_HEADERS, type TraceContext, traceOf, traceResponse } from '../../telemetry/trace-context.ts';
import type { Lifecycle } from '../lifecycle.ts';

/** The facts about a request that the middlewares share. */
export interface RequestState {
  /** The request's id, which is in every response and every line of the log. */
  id: string;
  /** The place in a trace, of this server's own span if it makes one, else of its caller's. */
  trace?: TraceContext;
  /** The time of a single decision, and the milliseconds that its body took to arrive. */
  timing?: Timing;
  readMs?: number;
  /** Whether every check that may refuse a decision request has let it pass. */
  isRead?: boolean;
  /** The number of answered questions. */
  questions?: number;
  /** The number of tokens that the answers were made from. */
  tokens?: number;
}

export type RequestContext = ParameterizedContext<RequestState>;

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/;

/** The number of characters after which the log cuts a path; every path of this server is much shorter. */
const MAX_LOGGED_PATH_CHARS = 200;

/** Returns the caller's request id if it is 1 to 128 visible ASCII characters, or else a new one. */
export function requestId(callers: string | string[] | undefined): string {
  return typeof callers === 'string' && VISIBLE_ASCII.test(callers) ? callers : randomUUID();
}

/**
 * Returns the headers that carry a request id: this server's own, and the one that the public Python client requires.
 */
export function requestIdHeaders(id: string): Record<string, string> {
  return { 'x-request-id': id, 'x-typesafe-request-id': id };
}

export interface RequestParts {
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly metrics: Pick<Metrics, 'countResponse'>;
  /** Undefined when no spans are made. */
  readonly tracer?: RequestTracer | undefined;
}

/** Returns the middleware that all others run in. */
export function handleRequests({ log, lifecycle, metrics, tracer }: RequestParts): Middleware<RequestState> {
  return async (ctx, next) => {
    const startMs = performance.now();
    ctx.state.id = requestId(ctx.req.headers['x-request-id']);
    ctx.set(requestIdHeaders(ctx.state.id));
    let failure: HttpFailure | undefined;
    const hasPath = isReadable(ctx.req.url ?? '');
    const span = hasPath
      ? tracer?.start({ method: ctx.method, path: ctx.path, headers: ctx.req.headers, startMs })
      : undefined;
    if (span !== undefined || ctx.req.headers[TRACE_HEADERS.parent] !== undefined) joinTrace(ctx, span);
    try {
      if (!hasPath) throw new HttpFailure('bad_request', 'malformed HTTP request');
      await next();
    } catch (error) {
      failure = toHttpFailure(error);
      if (failure.status === 500) log.error({ ...idsOf(ctx.state), err: error }, failure.message);
      // The headers are sent already, so only the log can say why an answer ended in the middle.
      else if (ctx.headerSent && failure.code !== 'cancelled') {
        log.warn({ ...idsOf(ctx.state), code: failure.code }, `connection closed: ${failure.message}`);
      }
      answerFailure(ctx, failure, hasPath ? ctx.path : undefined);
    }
    if (lifecycle.phase === 'draining') ctx.set('Connection', 'close');
    const status = failure?.status ?? ctx.status;
    const ms = performance.now() - startMs;
    afterAnswer(() => {
      metrics.countResponse(status);
      logRequest(log, ctx, { ms, status, code: failure?.code, path: hasPath ? ctx.path : undefined });
      span?.end({ ...spanFacts(ctx.state), status, code: failure?.code });
    });
  };
}

/** Takes note of the place of a request in a trace, and names it to the caller. */
function joinTrace(ctx: RequestContext, span: RequestSpan | undefined): void {
  const trace = span?.trace ?? traceOf(ctx.req.headers);
  if (trace === undefined) return;
  ctx.state.trace = trace;
  ctx.set(TRACE_HEADERS.response, traceResponse(trace));
}

/** Returns the fields by which lines of the log are found again. */
function idsOf({ id, trace }: RequestState) {
  return { id, trace_id: trace?.traceId };
}

function spanFacts({ id, questions, tokens, timing, readMs }: RequestState) {
  return { id, questions, tokens, timing, readMs };
}

/**
 * Runs `work` after the current answer is written and before any other request is answered, so that no caller waits for
 * counting and logging.
 */
export function afterAnswer(work: () => void): void {
  // Koa writes the answer in the promise jobs after its middleware, and these run before the next tick.
  process.nextTick(work);
}

/**
 * Whether a request target has a path. Koa's parser throws for some targets without one and warns of others on stderr;
 * both would reveal the whole target, which may contain a password.
 */
function isReadable(target: string): boolean {
  return /^(\/[^#\s]*|\*)$/.test(target) || (!target.startsWith('/') && URL.canParse(target));
}

function answerFailure(ctx: RequestContext, failure: HttpFailure, path: string | undefined): void {
  if (failure.code === 'cancelled' || ctx.headerSent || ctx.respond === false) {
    // The caller has gone, or an answer is half written, or Koa was told to write none: only a closed connection tells
    // the caller the truth.
    ctx.respond = false;
    ctx.res.destroy();
    return;
  }
  // The rest of the body is read and discarded: the connection stays usable for the next request, and a caller that is
  // still sending can read this answer. The server's timeout bounds this.
  ctx.req.resume();
  const { type, text } = errorBody(failure, { accept: ctx.req.headers.accept, path });
  ctx.status = failure.status;
  ctx.set({ ...failure.headers, 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
  ctx.body = text;
}

interface FinishedRequest {
  readonly ms: number;
  readonly status: number;
  readonly code: ErrorCode | undefined;
  readonly path: string | undefined;
}

/**
 * Returns a path for the log. In a URL that the caller put together wrongly, the path may hold a name and a password,
 * up to an `@` or to a character in them that ends the path; both stay out of the log. No path of this server has a
 * colon.
 */
function loggedPath(path: string): string {
  const at = path.lastIndexOf('@');
  if (at < 0 && !path.includes(':')) return path.slice(0, MAX_LOGGED_PATH_CHARS);
  return at < 0 ? '/…' : `/…${path.slice(at, at + MAX_LOGGED_PATH_CHARS)}`;
}

/**
 * Writes the request's line to the log, without the state, the answers, the keys and the query, which may hold a
 * password.
 */
function logRequest(log: Logger, ctx: RequestContext, { ms, status, code, path }: FinishedRequest): void {
  const { id, questions, tokens, trace } = ctx.state;
  log.info(
    {
      id,
      method: ctx.method,
      path: path && loggedPath(path),
      status,
      code,
      ms: Math.round(ms * 100) / 100,
      questions,
      tokens,
      trace_id: trace?.traceId,
      span_id: trace?.spanId,
    },
    'request',
  );
}
