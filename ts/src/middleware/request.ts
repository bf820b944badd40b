/** The outermost middleware: gives every request its id, every error its answer, and the log its line. */
import { randomUUID } from 'node:crypto';
import process from 'node:process';
import type { Middleware, ParameterizedContext } from 'koa';
import type { Logger } from 'pino';
import { type ErrorCode, errorBody, HttpFailure, toHttpFailure } from '../errors.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { Metrics } from '../metrics.ts';

/** What is known of the request on its way through the app. */
export interface RequestState {
  /** The request's id, in every answer and every line of the log. */
  id: string;
  /** Whether all who may refuse a decision request have let it pass. */
  isRead?: boolean;
  /** Questions that were answered. */
  questions?: number;
  /** Tokens that the answers were made from. */
  tokens?: number;
}

export type RequestContext = ParameterizedContext<RequestState>;

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/;

/** Longer paths are cut in the log: none of ours is near it. */
const MAX_LOGGED_PATH_CHARS = 200;

/** Returns the caller's request id when it is 1 to 128 visible ASCII characters, else a new one. */
export function requestId(callers: string | string[] | undefined): string {
  return typeof callers === 'string' && VISIBLE_ASCII.test(callers) ? callers : randomUUID();
}

/** Returns the headers that carry a request id: ours, and the one that the public Python client requires. */
export function requestIdHeaders(id: string): Record<string, string> {
  return { 'x-request-id': id, 'x-typesafe-request-id': id };
}

export interface RequestParts {
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly metrics: Pick<Metrics, 'countResponse'>;
}

/** Returns the middleware that all others run in. */
export function handleRequests({ log, lifecycle, metrics }: RequestParts): Middleware<RequestState> {
  return async (ctx, next) => {
    const startMs = performance.now();
    ctx.state.id = requestId(ctx.req.headers['x-request-id']);
    ctx.set(requestIdHeaders(ctx.state.id));
    let failure: HttpFailure | undefined;
    const hasPath = isReadable(ctx.req.url ?? '');
    try {
      if (!hasPath) throw new HttpFailure('bad_request', 'malformed HTTP request');
      await next();
    } catch (error) {
      failure = toHttpFailure(error);
      if (failure.status === 500) log.error({ id: ctx.state.id, err: error }, failure.message);
      // Nobody but the log can say why an answer ended in its middle.
      else if (ctx.headerSent && failure.code !== 'cancelled') {
        log.warn({ id: ctx.state.id, code: failure.code }, `connection closed: ${failure.message}`);
      }
      answerFailure(ctx, failure, hasPath ? ctx.path : undefined);
    }
    if (lifecycle.phase === 'draining') ctx.set('Connection', 'close');
    const status = failure?.status ?? ctx.status;
    const ms = performance.now() - startMs;
    afterAnswer(() => {
      metrics.countResponse(status);
      logRequest(log, ctx, { ms, status, code: failure?.code, path: hasPath ? ctx.path : undefined });
    });
  };
}

/**
 * Runs `work` when the answer that is being made has been written and before anything else is answered: no caller waits
 * for what is only counted and logged.
 */
export function afterAnswer(work: () => void): void {
  // Koa writes the answer in the promise jobs that follow its middleware, and those go before the next tick.
  process.nextTick(work);
}

/**
 * Returns whether a request target has a path. Koa's parser throws at some that have none and warns of others on stderr,
 * and both tell the whole target, where a password may be.
 */
function isReadable(target: string): boolean {
  return /^(\/[^#\s]*|\*)$/.test(target) || (!target.startsWith('/') && URL.canParse(target));
}

function answerFailure(ctx: RequestContext, failure: HttpFailure, path: string | undefined): void {
  if (failure.code === 'cancelled' || ctx.headerSent || ctx.respond === false) {
    // Nobody listens, or is in the middle of an answer, or Koa was told to write none. Closing the connection is the only
    // honest answer.
    ctx.respond = false;
    ctx.res.destroy();
    return;
  }
  // What is left of the body is thrown away: the connection stays fit for the next request, and the caller, who may
  // still be sending, gets to read this answer. The server's time-out bounds it.
  ctx.req.resume();
  const { type, text } = errorBody(failure, { accept: ctx.req.headers.accept, path });
  ctx.status = failure.status;
  ctx.set({ ...failure.headers, 'Content-Type': type, 'X-Content-Type-Options': 'nosniff' });
  ctx.body = text;
}

interface Outcome {
  readonly ms: number;
  readonly status: number;
  readonly code: ErrorCode | undefined;
  readonly path: string | undefined;
}

/**
 * Returns a path for the log. A URL that a caller has put together wrongly can have a name and a password in its path, up
 * to an `@`, or up to what cuts the path off in them; they stay out of it. None of our paths has a colon.
 */
function loggedPath(path: string): string {
  const at = path.lastIndexOf('@');
  if (at < 0 && !path.includes(':')) return path.slice(0, MAX_LOGGED_PATH_CHARS);
  return at < 0 ? '/…' : `/…${path.slice(at, at + MAX_LOGGED_PATH_CHARS)}`;
}

/** One line a request. State, answers, keys and the query, which may hold a password, stay out of it. */
function logRequest(log: Logger, ctx: RequestContext, { ms, status, code, path }: Outcome): void {
  const { id, questions, tokens } = ctx.state;
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
    },
    'request',
  );
}
