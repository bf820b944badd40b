/** Cross-origin resource sharing, only for the origins of `cors_origins`. */
import type { Middleware } from 'koa';
import type { RequestContext, RequestState } from './request.ts';

const EXPOSED = 'Retry-After, Server-Timing, traceresponse, x-request-id, x-typesafe-request-id';

/** The time for which a browser may keep the answer to its preflight. */
const PREFLIGHT_MAX_AGE_SECONDS = 600;

/** Returns the middleware that lets pages of the listed origins call the server and read its answers. */
export function cors(origins: readonly string[]): Middleware<RequestState> {
  const listed = new Set(origins);
  return (ctx, next) => {
    ctx.vary('Origin');
    const { origin } = ctx.req.headers;
    if (origin === undefined || !listed.has(origin)) return next();
    ctx.set('Access-Control-Allow-Origin', origin);
    if (ctx.method === 'OPTIONS' && 'access-control-request-method' in ctx.req.headers) return answerPreflight(ctx);
    ctx.set('Access-Control-Expose-Headers', EXPOSED);
    return next();
  };
}

function answerPreflight(ctx: RequestContext): void {
  ctx.status = 204;
  ctx.vary('Access-Control-Request-Headers');
  ctx.set({
    'Access-Control-Allow-Methods': 'GET, HEAD, POST',
    // Clients send headers of their own, so a listed origin may send any header.
    'Access-Control-Allow-Headers': ctx.get('access-control-request-headers') || 'authorization, content-type',
    'Access-Control-Max-Age': String(PREFLIGHT_MAX_AGE_SECONDS),
  });
}
