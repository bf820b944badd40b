/** A whole server on a fake engine, and a raw connection to it, on which a test writes HTTP itself. */
import { once } from 'node:events';
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { type Logger, pino } from 'pino';
import type { AskedReload } from '../../src/model/reload.ts';
import { EngineSlot } from '../../src/model/slot.ts';
import { type AppConfig, createApp } from '../../src/server/app.ts';
import { createHttpServer, type HttpServer, type HttpTimeouts } from '../../src/server/http-server.ts';
import { Lifecycle } from '../../src/server/lifecycle.ts';
import type { ApiKey } from '../../src/server/middleware/api-key.ts';
import type { Config } from '../../src/settings/config.ts';
import { Secret } from '../../src/settings/secret.ts';
import { Metrics } from '../../src/stats/metrics.ts';
import { Stats } from '../../src/stats/stats.ts';
import type { RequestTracer } from '../../src/telemetry/request-tracer.ts';
import { FakeEngine } from '../fake-engine.ts';
import { until } from '../until.ts';

export const DECISION = '{"state":"s","questions":{"q":{"type":"noul"}}}';

type TestConfig = Partial<AppConfig & Pick<Config, 'drainDelayMs' | 'drainMs'>>;

export interface Options {
  readonly config?: TestConfig;
  readonly apiKeys?: readonly string[];
  /** The dashboard password; if it is left out, the dashboard needs none. */
  readonly password?: string;
  readonly timeouts?: Partial<HttpTimeouts>;
  /** The port to listen on instead of a free one. */
  readonly port?: number;
  readonly maxConnections?: number;
  /** Whether the model stays unloaded. */
  readonly isLoading?: boolean;
  /** The tracer of requests; none by default. */
  readonly tracer?: RequestTracer;
  /** The function that a reload calls. */
  readonly reload?: () => Promise<void> | AskedReload;
}

/** The fields of a line of the log that tests look at. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly id?: string;
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  readonly code?: string;
  readonly ms?: number;
  readonly questions?: number;
  readonly tokens?: number;
}

/** A request of a test. */
export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
}

export interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface ServerUnderTest {
  readonly port: number;
  readonly engine: FakeEngine;
  readonly slot: EngineSlot;
  readonly stats: Stats;
  readonly lifecycle: Lifecycle;
  readonly http: HttpServer;
  readonly log: readonly LogLine[];
  /** Asks for a decision. */
  decide(sent?: Sent): Promise<Received>;
  get(path: string, headers?: OutgoingHttpHeaders): Promise<Received>;
}

const SETTINGS = {
  listen: { host: '127.0.0.1', port: 0 },
  allowedHosts: [],
  corsOrigins: [],
  maxBodyBytes: 1000,
  maxBatchBodyBytes: 2000,
  maxBatchStates: 7,
  maxQueueBytes: 100_000,
  requestTimeoutMs: 60_000,
  drainDelayMs: 0,
  drainMs: 100,
};

const TIMEOUTS: HttpTimeouts = { headersMs: 5000, bodyMs: 5000, keepAliveMs: 5000, checkMs: 20 };

/** Returns a server that listens on a free port of 127.0.0.1 until the test ends. */
export async function startServer(test: TestContext, options: Options = {}): Promise<ServerUnderTest> {
  const config = { ...SETTINGS, ...options.config };
  const lines: LogLine[] = [];
  const log: Logger = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const [engine, slot, lifecycle] = [new FakeEngine(), new EngineSlot(), new Lifecycle()];
  const stats = new Stats({ waiting: () => slot.queue().waiting });
  const metrics = new Metrics({ stats, slot, lostLines: () => 0 });
  if (!options.isLoading) slot.loaded(engine, { source: '/models/fake' });
  const apiKeys = (options.apiKeys ?? []).map(plainKey);
  const password = options.password === undefined ? undefined : new Secret(options.password, 'test');
  const { reload: reloaded = async () => {}, tracer } = options;
  const reload = () => {
    const asked = reloaded();
    return asked instanceof Promise ? { isQueued: false, done: asked } : asked;
  };
  const app = createApp({ config, slot, apiKeys, password, log, lifecycle, stats, metrics, tracer, reload });
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  const { maxConnections = 4096 } = options;
  const http = createHttpServer({ app, config, slot, lifecycle, log, metrics, timeouts, maxConnections });
  // Tests reach the server on 127.0.0.1, whatever address its config has for its rules.
  const { port } = await http.listen({ host: '127.0.0.1', port: options.port ?? 0 });
  test.after(() => http.drain());
  const decide = (sent?: Sent) => call(port, { method: 'POST', path: '/v1/systemone', body: DECISION, ...sent });
  const get = (path: string, headers: OutgoingHttpHeaders = {}) => call(port, { path, headers });
  return { port, engine, slot, stats, lifecycle, http, log: lines, decide, get };
}

/** Sends one request, with no headers except those that HTTP requires and `headers`. */
async function call(port: number, { body, headers, ...options }: Sent): Promise<Received> {
  const isFramed = body === undefined || headers?.['Transfer-Encoding'] !== undefined;
  const framing = isFramed ? {} : { 'Content-Length': Buffer.byteLength(body) };
  const req = request({ host: '127.0.0.1', port, headers: { ...framing, ...headers }, ...options }).end(body);
  const [res] = await once(req, 'response');
  const text = (await buffer(res)).toString();
  return { status: res.statusCode, headers: res.headers, text };
}

const plainKey = (key: string): ApiKey => ({ matches: (candidate) => candidate === key });

/** A raw connection to a server, on which a test writes HTTP itself. */
export class Wire {
  readonly socket: Socket;
  #received = '';
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.#received += chunk.toString('latin1');
    });
    // A reset counts as an end like any other; tests look at the received bytes.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isClosed = true;
    });
  }

  /** Returns a new connection, which closes when the test ends. */
  static async open(test: TestContext, port: number): Promise<Wire> {
    const wire = new Wire(connect({ port, host: '127.0.0.1' }));
    await once(wire.socket, 'connect');
    test.after(() => wire.socket.destroy());
    return wire;
  }

  send(text: string): void {
    this.socket.write(text, 'latin1');
  }

  get received(): string {
    return this.#received;
  }

  /** Returns all received bytes, once they hold `count` answers that end with `last`. */
  async receives(last: string, count = 1): Promise<string> {
    while (this.#received.split(last).length <= count) {
      if (this.#isClosed) throw new Error(`closed after ${JSON.stringify(this.#received)}`);
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')]);
    }
    return this.#received;
  }

  /** Returns all received bytes, once the server has closed the connection. */
  async ends(): Promise<string> {
    if (!this.#isClosed) await once(this.socket, 'close');
    return this.#received;
  }
}

/** Returns the value of a header in a raw answer. */
export function rawHeader(answer: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\r$`, 'im').exec(answer)?.[1];
}

/**
 * Waits for at least `ms` by the clock, and returns how long it was, in milliseconds. A timer alone would not do: it
 * counts from the beginning of its turn of the event loop.
 */
export async function waitAtLeast(ms: number): Promise<number> {
  const startMs = performance.now();
  await until(() => performance.now() - startMs >= ms);
  return performance.now() - startMs;
}
