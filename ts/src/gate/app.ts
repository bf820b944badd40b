/** Builds the gate's Koa app: an API-key check in front of a server. It never listens. */
import Koa, { type Middleware } from 'koa';
import { HttpFailure } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import { type ApiKey, requireApiKey } from '../middleware/api-key.ts';
import { checkHost } from '../middleware/caller.ts';
import { refuseWhileDraining } from '../middleware/draining.ts';
import { handleRequests, type RequestState } from '../middleware/request.ts';
import { WrongGuesses } from '../middleware/wrong-guesses.ts';
import { type ForwardParts, forward } from './forward.ts';
import { requireForwardable } from './headers.ts';
import { targetAccess } from './target.ts';

export interface GateParts extends ForwardParts {
  /** Empty: no key is checked. */
  readonly keys: readonly ApiKey[];
}

/** Whatever name the gate was called by: the server behind it looks at web pages' `Origin`. */
const ANY_HOST = { listen: { host: '0.0.0.0', port: 0 }, allowedHosts: [] };

/** The server behind it counts what it answers. */
export const UNCOUNTED: Pick<Metrics, 'countResponse'> = { countResponse: () => {} };

export function createGate(parts: GateParts): Koa<RequestState> {
  const { keys, lifecycle, log } = parts;
  const app = new Koa<RequestState>();
  // What arrives here is a connection that broke under an answer; Koa would print it.
  app.on('error', (err) => log.debug({ err }, 'connection broke'));
  app.use(handleRequests({ log, lifecycle, metrics: UNCOUNTED }));
  app.use(refuseWhileDraining(lifecycle));
  app.use(checkHost(ANY_HOST));
  app.use(checkTarget(requireApiKey(keys, new WrongGuesses())));
  app.use((ctx, next) => {
    requireForwardable(ctx.req);
    return next();
  });
  app.use(forward(parts));
  return app;
}

/** Lets `/health` pass, `/v1/` with the key, and nothing else. */
function checkTarget(key: Middleware<RequestState>): Middleware<RequestState> {
  return (ctx, next) => {
    const access = targetAccess(ctx.req.url ?? '');
    if (access === undefined) throw new HttpFailure('not_found', 'not found');
    return access === 'open' ? next() : key(ctx, next);
  };
}
