/**
 * Builds the Koa app that speaks the Model Context Protocol over HTTP, with the rules of the server on callers. It never
 * listens.
 */
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import Koa, { type Middleware } from 'koa';
import type { Logger } from 'pino';
import { HttpFailure } from '../errors.ts';
import type { Lifecycle } from '../server/lifecycle.ts';
import { type ApiKey, requireApiKey } from '../server/middleware/api-key.ts';
import { type BodyLimit, readBody } from '../server/middleware/body.ts';
import { BodyRoom } from '../server/middleware/body-room.ts';
import { checkHost, refuseCrossSite } from '../server/middleware/caller.ts';
import { cors } from '../server/middleware/cors.ts';
import { refuseWhileDraining } from '../server/middleware/draining.ts';
import { requireFraming } from '../server/middleware/framing.ts';
import { handleRequests, type RequestParts, type RequestState } from '../server/middleware/request.ts';
import { WrongGuesses } from '../server/middleware/wrong-guesses.ts';
import type { Config } from '../settings/config.ts';
import type { Decide } from './decider.ts';
import { createProtocolServer } from './protocol-server.ts';

const PATH = '/mcp';

export interface McpParts {
  readonly config: Pick<Config, 'listen' | 'allowedHosts' | 'corsOrigins' | 'maxBodyBytes' | 'maxQueueBytes'>;
  /** The accepted keys; if empty, no key is checked. */
  readonly keys: readonly ApiKey[];
  readonly decide: Decide;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
}

/** Metrics that count nothing: this program has no page for them. */
export const UNCOUNTED: RequestParts['metrics'] = { countResponse: () => {} };

export function createMcpApp({ config, keys, decide, lifecycle, log }: McpParts): Koa<RequestState> {
  const app = new Koa<RequestState>();
  // The errors that arrive here are of connections that broke during an answer; Koa would print them.
  app.on('error', (err) => log.debug({ err }, 'connection broke'));
  app.use(handleRequests({ log, lifecycle, metrics: UNCOUNTED }));
  app.use(requireFraming());
  app.use(refuseWhileDraining(lifecycle));
  app.use(checkHost(config));
  if (config.corsOrigins.length > 0) app.use(cors(config.corsOrigins));
  app.use(requireRoute);
  app.use(refuseCrossSite(config.corsOrigins));
  app.use(requireApiKey(keys, new WrongGuesses()));
  app.use(answerMessage(config, decide));
  return app;
}

/** Refuses all but `POST /mcp`. There are no sessions, so there is nothing to GET or to DELETE. */
const requireRoute: Middleware<RequestState> = (ctx, next) => {
  if (ctx.path !== PATH) throw new HttpFailure('not_found', 'not found');
  if (ctx.method === 'POST') return next();
  throw new HttpFailure('method_not_allowed', 'method not allowed; use POST', { Allow: 'POST' });
};

/**
 * Returns the middleware that answers the messages of a request. Each request has a server of its own, which is gone
 * with its answer: no caller can keep memory here.
 */
function answerMessage(config: McpParts['config'], decide: Decide): Middleware<RequestState> {
  const limit: BodyLimit = { maxBytes: config.maxBodyBytes, setting: 'max_body_bytes' };
  const room = new BodyRoom(config.maxQueueBytes);
  return async (ctx) => {
    const message = withoutCancels(parsed(await readBody(ctx.req, { limit, room })));
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    const server = createProtocolServer(decide);
    ctx.res.once('close', () => void server.close());
    ctx.respond = false;
    // The types of the SDK do not tell an absent property from an undefined one.
    await server.connect(transport as Transport);
    await transport.handleRequest(ctx.req, ctx.res, message);
  };
}

/**
 * Returns a message, or messages, without those that cancel others: a request that is cancelled gets no answer, so that
 * its caller would wait for ever. Callers cancel by closing the connection.
 */
function withoutCancels(message: unknown): unknown {
  if (!Array.isArray(message)) return message;
  return message.filter((each) => each?.method !== 'notifications/cancelled');
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new HttpFailure('invalid_json', 'invalid JSON');
  }
}
