/** `svc serve`: reads the settings, and loads the model while the rest of the program is still being read. */
import { type Flags, loadConfig } from '../config.ts';
import { startEngine } from '../model/load.ts';

/**
 * Resolves once the server answers requests; it then runs until a signal ends the process.
 *
 * @throws Refusal when a setting is wrong, the port is taken, or the model cannot be loaded.
 */
export async function serve(flags: Flags): Promise<void> {
  const settings = loadConfig({ flags, create: true });
  const stop = new AbortController();
  const loaded = startEngine(settings.config, stop.signal);
  // Whoever waits for the engine is told of its failure, but nobody does before the program is there.
  loaded.catch(() => {});
  const { runServer } = await import('../run-server.ts');
  await runServer(settings, { loaded, stop: () => stop.abort() }, () => loadConfig({ flags }));
}
