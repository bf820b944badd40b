/** Builds the Koa app: which middleware runs in which order, and which route answers what. It never listens. */
import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { HttpFailure } from './errors.ts';
import type { Lifecycle } from './lifecycle.ts';
import { type ApiKey, requireApiKey } from './middleware/api-key.ts';
import { checkHost, refuseCrossSite } from './middleware/caller.ts';
import { cors } from './middleware/cors.ts';
import { refuseWhileDraining } from './middleware/draining.ts';
import { handleRequests, type RequestState } from './middleware/request.ts';
import type { EngineSlot } from './model/slot.ts';
import { decide } from './routes/decide.ts';
import { healthRoutes } from './routes/health.ts';
import { listModels } from './routes/models.ts';
import type { Stats } from './stats.ts';

/** The settings that the app reads. */
export type AppConfig = Pick<Config, 'listen' | 'allowedHosts' | 'corsOrigins' | 'maxBodyBytes'>;

export interface AppParts {
  readonly config: AppConfig;
  readonly engine: EngineSlot;
  /** Empty: the API key is off. */
  readonly apiKeys: readonly ApiKey[];
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly stats: Stats;
}

export function createApp(parts: AppParts): Koa<RequestState> {
  const { config, log, lifecycle } = parts;
  const app = new Koa<RequestState>();
  // What arrives here is a connection that broke under an answer; Koa would print it.
  app.on('error', (err) => log.debug({ err }, 'connection broke'));
  const router = createRouter(parts);
  app.use(handleRequests(log, lifecycle));
  app.use(refuseWhileDraining(lifecycle));
  app.use(checkHost(config));
  if (config.corsOrigins.length > 0) app.use(cors(config.corsOrigins));
  app.use(router.routes());
  app.use(refuseUnrouted(router));
  return app;
}

function createRouter({ config, engine, apiKeys, lifecycle, stats }: AppParts): Router<RequestState> {
  // Exact paths only: a gate in front compares them byte by byte, and must not see others than we do.
  const router = new Router<RequestState>({ sensitive: true, strict: true });
  const apiKey = requireApiKey(apiKeys);
  router.post('/v1/systemone', refuseCrossSite(config), apiKey, decide({ config, engine, stats }));
  router.get('/v1/models', apiKey, listModels(engine));
  healthRoutes(router, engine, lifecycle);
  return router;
}

/** 405 for a path that has routes of other methods, 404 for one that has none. */
function refuseUnrouted(router: Router<RequestState>): Middleware<RequestState> {
  return (ctx) => {
    const methods = router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new HttpFailure('not_found', 'not found');
    const allow = methods.sort().join(', ');
    throw new HttpFailure('method_not_allowed', `method not allowed; use ${allow}`, { Allow: allow });
  };
}
