/** Builds the Koa app: which middleware runs in which order, and which route answers what. It never listens. */
import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import type { Logger } from 'pino';
import { HttpFailure } from '../errors.ts';
import type { EngineSlot } from '../model/slot.ts';
import { DECISIONS_PATH } from '../schemas/names.ts';
import type { Config } from '../settings/config.ts';
import type { Secret } from '../settings/secret.ts';
import type { Metrics } from '../stats/metrics.ts';
import type { FinishedDecision, Stats } from '../stats/stats.ts';
import type { RequestTracer } from '../telemetry/request-tracer.ts';
import { readAssets } from './assets.ts';
import type { Lifecycle } from './lifecycle.ts';
import { type ApiKey, requireApiKey } from './middleware/api-key.ts';
import { BodyRoom } from './middleware/body-room.ts';
import { checkHost, refuseCrossSite } from './middleware/caller.ts';
import { cors } from './middleware/cors.ts';
import { refuseWhileDraining } from './middleware/draining.ts';
import { requireFraming } from './middleware/framing.ts';
import { createOperator, type Operator } from './middleware/password.ts';
import { countRefused, noteRead } from './middleware/refused.ts';
import { handleRequests, type RequestState } from './middleware/request.ts';
import { WrongGuesses } from './middleware/wrong-guesses.ts';
import { type BatchParts, decideBatch } from './routes/batch.ts';
import { type DecideParts, decide } from './routes/decide.ts';
import { healthRoutes } from './routes/health.ts';
import { showMetrics } from './routes/metrics.ts';
import { listModels, showModel } from './routes/models.ts';
import { openApiRoutes } from './routes/openapi.ts';
import { showAsset, showHome } from './routes/pages.ts';
import { listRecipes, showRecipe } from './routes/recipes.ts';
import { type ReloadParts, reloadModel } from './routes/reload.ts';
import { showStats, statsSnapshot } from './routes/stats.ts';

const SYSTEMONE_PATH = '/v1/systemone';
const BATCH_PATH = '/v1/systemone/batch';
const DECISION_PATHS = new Set([SYSTEMONE_PATH, BATCH_PATH, DECISIONS_PATH]);

/** The settings that the app reads. */
export type AppConfig = Pick<
  Config,
  | 'listen'
  | 'allowedHosts'
  | 'corsOrigins'
  | 'maxBodyBytes'
  | 'maxBatchBodyBytes'
  | 'maxBatchStates'
  | 'maxQueueBytes'
  | 'requestTimeoutMs'
>;

interface AppParts {
  readonly config: AppConfig;
  readonly slot: EngineSlot;
  /** The API keys; an empty list means that the check of API keys is off. */
  readonly apiKeys: readonly ApiKey[];
  /** The dashboard password; undefined means that its check is off. */
  readonly password: Secret | undefined;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly stats: Stats;
  readonly metrics: Metrics;
  /** Undefined when no spans are made. */
  readonly tracer?: RequestTracer | undefined;
  /** Replaces the model with the one that the settings name now. */
  readonly reload: ReloadParts['reload'];
}

export function createApp(parts: AppParts): Koa<RequestState> {
  const { config, log, lifecycle, metrics, stats, tracer } = parts;
  const app = new Koa<RequestState>();
  // The errors that arrive here are of connections that broke during an answer; Koa would print them.
  app.on('error', (err) => log.debug({ err }, 'connection broke'));
  const router = createRouter(parts);
  app.use(handleRequests({ log, lifecycle, metrics, tracer }));
  app.use(requireFraming());
  app.use(countRefused(DECISION_PATHS, stats));
  app.use(refuseWhileDraining(lifecycle));
  app.use(checkHost(config));
  if (config.corsOrigins.length > 0) app.use(cors(config.corsOrigins));
  app.use(router.routes());
  app.use(refuseUnrouted(router));
  return app;
}

function createRouter(parts: AppParts): Router<RequestState> {
  const { config, slot, apiKeys, password, lifecycle, reload } = parts;
  // Only exact paths match: a gate in front compares paths byte by byte, and must see the same paths as this server.
  const router = new Router<RequestState>({ sensitive: true, strict: true });
  const guesses = new WrongGuesses();
  const apiKey = requireApiKey(apiKeys, guesses);
  const record = recorder(parts);
  const ownSite = refuseCrossSite(config.corsOrigins);
  // Batches have a room of their own, so that a large batch keeps no single request out; the queue does the same.
  const [room, batchRoom] = [new BodyRoom(config.maxQueueBytes), new BodyRoom(config.maxQueueBytes)];
  const decisions = decisionRoutes({ config, slot, room, record }, batchRoom);
  for (const [path, answer] of decisions) router.post(path, ownSite, apiKey, noteRead, answer);
  router.get('/v1/models', apiKey, listModels(slot));
  router.get('/v1/models/:id', apiKey, showModel(slot));
  healthRoutes(router, slot, lifecycle);
  openApiRoutes(router);
  const operator = createOperator({ password, apiKeys, guesses });
  operatorRoutes(router, operator, parts);
  router.post('/playground', operator.action, decide({ config, slot, room, record }));
  router.post('/reload', operator.action, reloadModel({ slot, lifecycle, reload }));
  return router;
}

/** Returns the paths of the decisions, each with the middleware that answers it. */
function decisionRoutes(parts: BatchParts & DecideParts, batchRoom: BodyRoom): [string, Middleware<RequestState>][] {
  return [
    [SYSTEMONE_PATH, decide(parts)],
    [BATCH_PATH, decideBatch({ ...parts, room: batchRoom })],
    [DECISIONS_PATH, decide({ ...parts, format: 'decisions' })],
  ];
}

/** Adds the routes that show something to the operator, and the files that the pages are made of. */
function operatorRoutes(router: Router<RequestState>, { guard, action }: Operator, parts: AppParts): void {
  const { config, slot, apiKeys, metrics } = parts;
  const hasApiKey = apiKeys.length > 0;
  const pages = { listen: config.listen, assets: readAssets(), slot, hasApiKey, action };
  const snapshot = () => statsSnapshot({ ...parts, hasApiKey });
  router.get('/stats', guard, showStats(snapshot));
  router.get('/metrics', guard, showMetrics(metrics));
  router.get('/', guard, showHome({ ...pages, snapshot }));
  router.get('/recipes', guard, listRecipes(pages));
  router.get('/recipes/:name', guard, showRecipe(pages));
  router.get('/assets/:name', showAsset(pages.assets));
}

/** Returns a function that counts a finished decision, in all places where decisions are counted. */
function recorder({ stats, metrics }: AppParts): (finished: FinishedDecision) => void {
  return (finished) => {
    stats.record(finished);
    if (finished.timing) metrics.observe(finished.timing);
  };
}

/**
 * Returns middleware that answers 405 for a path that has routes of other methods, and 404 for a path without routes.
 */
function refuseUnrouted(router: Router<RequestState>): Middleware<RequestState> {
  return (ctx) => {
    const methods = router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new HttpFailure('not_found', 'not found');
    const allow = methods.sort().join(', ');
    throw new HttpFailure('method_not_allowed', `method not allowed; use ${allow}`, { Allow: allow });
  };
}
