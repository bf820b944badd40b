/** `svc model rm`: removes a model from elsewhere from this disk, and from the hub's cache. */
import { formatBytes } from '../dashboard/format.ts';
import { printable } from '../log/printable.ts';
import { removeModels } from '../model/kept-models.ts';
import { publicSource } from '../model/location.ts';
import type { Flags } from '../settings/config.ts';
import { commandSettings } from './command-settings.ts';

/**
 * Resolves once the model is gone.
 *
 * @throws Refusal when there is no such model, or a running process uses it.
 */
export async function modelRm(model: string, flags: Flags): Promise<void> {
  const config = commandSettings({ ...flags, model });
  const { bytes, keptBy } = await removeModels(config.model, config);
  const others = [...new Set(keptBy)];
  const have = others.length === 1 ? 'has' : 'have';
  const stays = others.length === 0 ? '' : `; ${others.join(', ')} ${have} the same files, which stay`;
  process.stdout.write(`${printable(`${publicSource(config.model)}: removed, ${formatBytes(bytes)}${stays}`)}\n`);
}
