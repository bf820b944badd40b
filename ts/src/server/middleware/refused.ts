/**
 * Counts the decision requests that are refused before they are read: a wrong key or method, a foreign page, a server
 * that is shutting down.
 */
import type { Middleware } from 'koa';
import type { Stats } from '../../stats/stats.ts';
import type { RequestState } from './request.ts';

/** Returns the middleware that counts requests to one of `paths` that fail before `noteRead` marks them as read. */
export function countRefused(
  paths: ReadonlySet<string>,
  stats: Pick<Stats, 'recordRefused'>,
): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      // Requests that are read are counted where they are decided, in a batch once for each state.
      if (ctx.state.isRead !== true && paths.has(ctx.path)) stats.recordRefused();
      throw error;
    }
  };
}

/** Marks the request as read from here on. */
export const noteRead: Middleware<RequestState> = (ctx, next) => {
  ctx.state.isRead = true;
  return next();
};
