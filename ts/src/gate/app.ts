/** Builds the gate's Koa app: an API-key check in front of a server. The app itself never listens. */
import Koa, { type Middleware } from 'koa';
import { HttpFailure } from '../errors.ts';
import { type ApiKey, requireApiKey } from '../server/middleware/api-key.ts';
import { checkHost } from '../server/middleware/caller.ts';
import { refuseWhileDraining } from '../server/middleware/draining.ts';
import { requireFraming } from '../server/middleware/framing.ts';
import { handleRequests, type RequestParts, type RequestState } from '../server/middleware/request.ts';
import { WrongGuesses } from '../server/middleware/wrong-guesses.ts';
import type { Config } from '../settings/config.ts';
import { type ForwardParts, forward } from './forward.ts';
import { requireHttp } from './headers.ts';
import { gateName, refuseLoops } from './loop.ts';
import { targetAccess } from './target.ts';

interface GateParts extends ForwardParts, Pick<Config, 'listen' | 'allowedHosts'> {
  /** The accepted keys; if empty, no key is checked. */
  readonly keys: readonly ApiKey[];
}

/** Metrics that count nothing: the server behind the gate counts its own answers. */
export const UNCOUNTED: RequestParts['metrics'] = { countResponse: () => {} };

export function createGate(parts: GateParts): Koa<RequestState> {
  const { keys, lifecycle, log } = parts;
  const app = new Koa<RequestState>();
  const name = gateName();
  // This event reports a connection that broke during an answer; without a listener, Koa would print it.
  app.on('error', (err) => log.debug({ err }, 'connection broke'));
  app.use(handleRequests({ log, lifecycle, metrics: UNCOUNTED }));
  app.use(requireFraming());
  app.use(refuseLoops(name));
  app.use(refuseWhileDraining(lifecycle));
  app.use(checkHost(parts));
  app.use(checkTarget(requireApiKey(keys, new WrongGuesses())));
  app.use((ctx, next) => {
    requireHttp(ctx.req);
    return next();
  });
  app.use(forward(parts, name));
  return app;
}

/** Returns the middleware that lets `/health` pass, `/v1/` with the key, and nothing else. */
function checkTarget(key: Middleware<RequestState>): Middleware<RequestState> {
  return (ctx, next) => {
    const access = targetAccess(ctx.req.url ?? '');
    if (access === undefined) throw new HttpFailure('not_found', 'not found');
    return access === 'open' ? next() : key(ctx, next);
  };
}
