/** `svc gate`: an API-key check in front of a server, which the gate can also start. */
import type { Logger } from 'pino';
import { createGate, UNCOUNTED } from '../gate/app.ts';
import { refuseOwnAddress } from '../gate/loop.ts';
import { type GateFlags, gateSettings } from '../gate/settings.ts';
import { createLog } from '../log/log.ts';
import { shownAddress } from '../network/address.ts';
import { serverName } from '../network/reach.ts';
import { Refusal } from '../refusal.ts';
import { connectionLimit } from '../server/connections.ts';
import { createHttpServer } from '../server/http-server.ts';
import { Lifecycle } from '../server/lifecycle.ts';
import { stopOnSignal } from '../server/stop-on-signal.ts';
import { loadConfig, processEnvironment } from '../settings/config.ts';
import { ServerProcess } from './server-process.ts';

/** The part of `drain_ms` that is left for the started server to close its engine: at most in ms, and as a fraction. */
const MAX_CLOSE_MS = 1000;
const CLOSE_PART = 0.2;

/**
 * Resolves once the gate takes requests; it then runs until a signal, or the end of the server that it started, ends
 * the process.
 *
 * @throws Refusal when a setting is wrong, the port is taken, or the server that the gate starts does not start.
 */
export async function gate(flags: GateFlags): Promise<void> {
  const env = processEnvironment();
  // The gate has the log and drain settings of the server, but an address of its own.
  const { listen: _, host: _host, port: _port, ...shared } = flags;
  const { config, warnings } = loadConfig({ flags: shared, env });
  const settings = gateSettings(flags, env, config);
  const { log } = createLog({ level: config.logLevel, format: config.logFormat, isTerminal: process.stderr.isTTY });

  const lifecycle = new Lifecycle();
  const { allowedHosts } = config;
  const closeMs = flags.run ? Math.min(MAX_CLOSE_MS, config.drainMs * CLOSE_PART) : 0;
  const app = createGate({ ...settings, keys: settings.credential.secrets, allowedHosts, lifecycle, log });
  const http = createHttpServer({
    app,
    config: { ...config, drainMs: config.drainMs - closeMs },
    slot: { model: undefined },
    lifecycle,
    log,
    metrics: UNCOUNTED,
    // Each connection may need one more to the server behind the gate.
    maxConnections: connectionLimit(2),
  });
  let server: ServerProcess | undefined;
  let isStopping = false;
  stopOnSignal(log, async () => {
    isStopping = true;
    const endMs = performance.now() + config.drainDelayMs + config.drainMs;
    await http.drain();
    const hasEnded = await server?.stop(Math.max(closeMs, endMs - performance.now()));
    if (hasEnded === false) log.warn('the server beside the gate did not end in time and was killed');
  });
  for (const warning of [...warnings, ...settings.warnings]) log.warn(warning);
  log.info(`${settings.credential.status}; the server is at ${serverName(settings.upstream)}`);
  await refuseOwnAddress(settings.listen, settings.upstream);
  if (flags.run) {
    server = await ServerProcess.start(settings.upstream, flags, env);
    log.info(`the server beside the gate is process ${server.pid}`);
    const isReady = await server.ready(() => log.warn('the server beside the gate is not ready yet'));
    if (!isReady && !isStopping) throw new Refusal(`the server beside the gate did not start: ${await server.ended}`);
  }
  if (isStopping) return;
  log.info(`listening on ${shownAddress(await http.listen(settings.listen))}`);
  void server?.ended.then((how) => {
    if (!isStopping) endWith(log, how);
  });
}

function endWith(log: Logger, how: string): void {
  log.fatal(`the server beside the gate has ended (${how}), so the gate ends`);
  process.exit(1);
}
