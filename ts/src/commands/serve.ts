/** `svc serve`: reads the settings, and loads the model while the rest of the program is still being read. */

import { startEngine } from '../model/load.ts';
import { type Config, type Flags, loadConfig, processEnvironment } from '../settings/config.ts';
import { welcome } from './welcome.ts';

/**
 * Resolves once the server answers requests; it then runs until a signal ends the process.
 *
 * @throws Refusal when a setting is wrong, the port is taken, or the model cannot be loaded.
 */
export async function serve(flags: Flags): Promise<void> {
  const settings = loadConfig({ flags, create: true });
  const stop = new AbortController();
  const loaded = startEngine(settings.config, stop.signal);
  // Callers that wait for the engine see its failure; until the program is loaded there are none, so the rejection is
  // handled here.
  loaded.catch(() => {});
  const { runServer } = await import('../server/run.ts');
  await runServer(
    settings,
    { loaded, stop: () => stop.abort() },
    {
      reread: () => loadConfig({ flags }),
      greet: (serving) => (isForPerson(settings.config) ? welcome(serving, processEnvironment()) : []),
    },
  );
}

/** Whether the log is for a person at a terminal, who has started this server and not the gate in front of it. */
function isForPerson({ logFormat }: Config): boolean {
  return process.stderr.isTTY === true && logFormat !== 'json' && process.send === undefined;
}
