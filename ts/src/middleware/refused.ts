/** Counts the decision requests that never reach what decides: wrong key, wrong method, a foreign page, a server that ends. */
import type { Middleware } from 'koa';
import type { Stats } from '../stats.ts';
import type { RequestState } from './request.ts';

/** Counts what fails on one of `paths` before `noteRead` has said that it is read. */
export function countRefused(
  paths: ReadonlySet<string>,
  stats: Pick<Stats, 'recordRefused'>,
): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      // What is read counts itself, each state of a batch for its own.
      if (ctx.state.isRead !== true && paths.has(ctx.path)) stats.recordRefused();
      throw error;
    }
  };
}

/** Notes that the request is read from here on. */
export const noteRead: Middleware<RequestState> = (ctx, next) => {
  ctx.state.isRead = true;
  return next();
};
