/** The server: opens the port, takes the model when it is loaded, and ends in order when it is told to. */
import type { Logger } from 'pino';
import { removeAbandoned } from '../files/exclusive-file.ts';
import { createLog } from '../log/log.ts';
import type { LoadedEngine } from '../model/load.ts';
import { publicSource } from '../model/location.ts';
import { reopenModelSource } from '../model/open-source.ts';
import { Reloader } from '../model/reload.ts';
import { EngineSlot } from '../model/slot.ts';
import { shownAddress } from '../network/address.ts';
import { type LoadedConfig, processEnvironment } from '../settings/config.ts';
import { announcement, type Credential, resolveApiKeys, resolvePassword } from '../settings/credentials.ts';
import { telemetrySettings } from '../settings/telemetry.ts';
import { Metrics } from '../stats/metrics.ts';
import { Stats } from '../stats/stats.ts';
import type { Telemetry } from '../telemetry/open-telemetry.ts';
import { createApp } from './app.ts';
import { connectionLimit } from './connections.ts';
import { createHttpServer } from './http-server.ts';
import { Lifecycle } from './lifecycle.ts';
import { reloadOnHangUp } from './reload-on-signal.ts';
import { stopOnSignal } from './stop-on-signal.ts';

/** A model that is being fetched and loaded. */
interface StartingEngine {
  readonly loaded: Promise<LoadedEngine>;
  /** Ends the fetching. */
  stop(): void;
}

/** A server that answers, as the person at its terminal is told. */
export interface Serving {
  /** The URL of the server, without a path. */
  readonly url: string;
  /** Whether a decision needs an API key. */
  readonly needsKey: boolean;
  /** Whether the dashboard needs a password. */
  readonly needsPassword: boolean;
}

export interface ServerHooks {
  /** Reads the settings again, to learn for a reload which model they name now. */
  readonly reread: () => LoadedConfig;
  /** Returns the lines that the log of a server begins with once it answers. */
  readonly greet: (serving: Serving) => readonly string[];
}

/**
 * Resolves once the server answers requests, with the engine that is `starting`; it then runs until a signal ends the
 * process.
 *
 * @throws Refusal when a setting is wrong, the port is taken, or the model cannot be loaded.
 */
export async function runServer(
  settings: LoadedConfig,
  starting: StartingEngine,
  { reread, greet }: ServerHooks,
): Promise<void> {
  const { config } = settings;
  const isTerminal = process.stderr.isTTY;
  const { log, lostLines } = createLog({ level: config.logLevel, format: config.logFormat, isTerminal });
  logConfig(log, settings);
  for (const folder of [config.configDir, config.dataDir ?? config.workDir, config.workDir]) removeAbandoned(folder);
  const apiKeys = resolveApiKeys(config);
  const password = resolvePassword(config);
  for (const credential of [apiKeys, password]) logCredential(log, credential, isTerminal);

  const slot = new EngineSlot();
  const lifecycle = new Lifecycle();
  const stats = new Stats({ waiting: () => slot.queue().waiting });
  const metrics = new Metrics({ stats, slot, lostLines });
  const credentials = { apiKeys: apiKeys.secrets, password: password.secrets[0] };
  const reloader = new Reloader({
    slot,
    loaded: starting.loaded,
    open: async (before) => reopenModelSource(reread().config, before),
    async prove(folder, signal) {
      // A start does not need this code.
      const { tryModel } = await import('../model/trial.ts');
      await tryModel(config, folder, signal);
    },
    log,
    wantsAccelerator: config.device !== 'auto',
  });
  const reload = () => reloader.reload();
  const telemetry = await openTelemetry(log, metrics);
  const { tracer } = telemetry ?? {};
  const app = createApp({ config, slot, ...credentials, log, lifecycle, stats, metrics, tracer, reload });
  const maxConnections = connectionLimit(1);
  const server = createHttpServer({ app, config, slot, lifecycle, log, metrics, maxConnections });

  let isStopping = false;
  stopOnSignal(log, async () => {
    isStopping = true;
    reloader.stop();
    starting.stop();
    await server.drain();
    await telemetry?.stop();
    // The load has to end first: the engine of a half-loaded model cannot be shut down in order.
    await starting.loaded.catch(() => {});
  });
  reloadOnHangUp(() => {
    const { isQueued, done } = reload();
    log.info(`SIGHUP: loading the model anew${isQueued ? ', once the reload that is under way has ended' : ''}`);
    // An error of the reload is in the log already.
    done.catch(() => {});
  });
  const url = shownAddress(await server.listen(config.listen));
  log.info(`listening on ${url}`);
  if (config.model !== '') log.info(`model: ${publicSource(config.model)}`);
  await reloader.start().catch((error: unknown) => {
    if (!isStopping) throw error;
  });
  if (isStopping) return;
  const needs = { needsKey: apiKeys.secrets.length > 0, needsPassword: password.secrets.length > 0 };
  for (const line of greet({ url, ...needs })) log.info(line);
}

/** Returns the connection to a collector; undefined, with nothing loaded, when the environment names none. */
async function openTelemetry(log: Logger, metrics: Metrics): Promise<Telemetry | undefined> {
  const { settings, warnings } = telemetrySettings(processEnvironment());
  for (const warning of warnings) log.warn(warning);
  if (settings === undefined) return undefined;
  const { startTelemetry } = await import('../telemetry/open-telemetry.ts');
  return startTelemetry(settings, { metrics, log });
}

function logConfig(log: Logger, { config, warnings, created }: LoadedConfig): void {
  for (const warning of warnings) log.warn(warning);
  if (created !== undefined) log.info(`settings: ${created} made, with the defaults`);
  else log.info(`settings: ${config.file ?? 'no svc.json, the defaults'}`);
}

/**
 * Logs which credential is required, and which one was generated, whatever the level of the log: a person could not
 * learn this otherwise. A credential that is shown goes past the log, so that no log file keeps it.
 */
function logCredential(log: Logger, { status, warnings, generated }: Credential, isTerminal: boolean): void {
  const always = log.child({}, { level: 'info' });
  for (const warning of warnings) log.warn(warning);
  // The line about a generated credential says where it is, as its status does.
  if (generated === undefined || isTerminal) always.info(status);
  if (generated === undefined) return;
  const line = announcement(generated, isTerminal);
  if (isTerminal) process.stderr.write(`\n${line}\n\n`);
  else always.info(line);
}
