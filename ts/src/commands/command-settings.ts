/** The settings of a command that is no server. */
import { tell } from '../log/tell.ts';
import { type Config, type Flags, loadConfig } from '../settings/config.ts';

/**
 * Returns the settings, whose warnings go to stderr.
 *
 * @throws Refusal when they are wrong.
 */
export function commandSettings(flags: Flags): Config {
  const { config, warnings } = loadConfig({ flags });
  for (const warning of warnings) tell(warning);
  return config;
}
