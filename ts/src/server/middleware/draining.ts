/** Refuses requests that arrive on an open connection while the server drains. */
import { finished } from 'node:stream/promises';
import type { Middleware } from 'koa';
import { callerGone, HttpFailure } from '../../errors.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { RequestState } from './request.ts';

export function refuseWhileDraining(lifecycle: Lifecycle): Middleware<RequestState> {
  return async (ctx, next) => {
    if (lifecycle.phase !== 'draining') return next();
    // This answer closes the connection. Closing it with unread bytes would reset it, and the caller would lose the
    // answer.
    await finished(ctx.req.resume()).catch(gone);
    throw new HttpFailure('draining', 'the server is shutting down', { Connection: 'close' });
  };
}

function gone(): never {
  throw callerGone();
}
