/** A gate on a free port of 127.0.0.1, in front of a server that a test writes. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { createGate, UNCOUNTED } from '../../src/gate/app.ts';
import type { ForwardTimeouts } from '../../src/gate/forward.ts';
import type { Address } from '../../src/network/address.ts';
import { createHttpServer, DEFAULT_TIMEOUTS, type HttpServer } from '../../src/server/http-server.ts';
import { Lifecycle } from '../../src/server/lifecycle.ts';
import { Secret } from '../../src/settings/secret.ts';
import type { LogLine } from '../http/server-under-test.ts';

export const KEY = 'the-key-of-the-gate';
export const AUTHORIZATION = `Authorization: Bearer ${KEY}\r\n`;

export interface GateOptions {
  /** The URL of the server; if it is left out, a server is made from `answer`. */
  readonly upstream?: URL;
  /** The listener that answers for that server; it sends an empty 200 by default. */
  readonly answer?: RequestListener;
  readonly timeouts?: Partial<ForwardTimeouts>;
  readonly bodyMs?: number;
  readonly hasKey?: boolean;
  readonly upstreamKey?: string;
  /** The address that the gate's rules use as its own; by default, one that other machines can reach. */
  readonly listen?: Address;
  readonly allowedHosts?: readonly string[];
  readonly maxConnections?: number;
}

export interface GateUnderTest {
  readonly port: number;
  readonly http: HttpServer;
  readonly app: ReturnType<typeof createGate>;
  readonly lifecycle: Lifecycle;
  /** The requests that reached the server. */
  readonly requests: readonly IncomingMessage[];
  readonly log: readonly (LogLine & { readonly cause?: string })[];
  readonly upstreamServer: Server;
}

/** Returns a gate that listens until the test ends. */
export async function startGate(test: TestContext, options: GateOptions = {}): Promise<GateUnderTest> {
  const { timeouts, bodyMs = 60_000, hasKey = true, answer = (_, res) => res.end() } = options;
  const requests: IncomingMessage[] = [];
  const upstreamServer = createServer((req, res) => {
    requests.push(req);
    answer(req, res);
  });
  // Connections are kept for as long as by svc itself. With Node's default of five seconds, the gate could use one that
  // is being closed.
  upstreamServer.keepAliveTimeout = DEFAULT_TIMEOUTS.keepAliveMs;
  const upstream = options.upstream ?? new URL(`http://127.0.0.1:${await listen(test, upstreamServer)}`);
  const log: LogLine[] = [];
  const parts = {
    lifecycle: new Lifecycle(),
    log: pino({ level: 'info' }, { write: (line: string) => log.push(JSON.parse(line)) }),
  };
  const { upstreamKey, listen: believed = { host: '0.0.0.0', port: 0 }, allowedHosts = [] } = options;
  const app = createGate({
    ...parts,
    listen: believed,
    allowedHosts,
    upstream,
    upstreamKey: upstreamKey === undefined ? undefined : new Secret(upstreamKey, 'GATE_UPSTREAM_KEY'),
    timeouts: { connectMs: 60_000, silenceMs: 60_000, batchMs: 60_000, ...timeouts },
    keys: hasKey ? [new Secret(KEY, 'GATE_API_KEY')] : [],
  });
  const config = { drainDelayMs: 0, drainMs: 100, requestTimeoutMs: 60_000 };
  const http = createHttpServer({
    ...parts,
    app,
    config,
    slot: { model: undefined },
    metrics: UNCOUNTED,
    maxConnections: options.maxConnections ?? 4096,
    timeouts: { ...DEFAULT_TIMEOUTS, headersMs: bodyMs, bodyMs, checkMs: 20 },
  });
  const { port } = await http.listen({ host: '127.0.0.1', port: 0 });
  test.after(() => http.drain());
  return { port, http, app, lifecycle: parts.lifecycle, requests, log, upstreamServer };
}

/** Returns the port of a server that listens until the test ends. */
export async function listen(test: TestContext, server: Server | import('node:net').Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
