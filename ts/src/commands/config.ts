/** `svc config`: the settings that a server would have, and where each came from; it adds settings for an installer. */
import { resolve } from 'node:path';
import { printable } from '../log/printable.ts';
import { tell } from '../log/tell.ts';
import { publicSource } from '../model/location.ts';
import { formatAddress } from '../network/address.ts';
import { type ConfigKey, ConfigSchema } from '../schemas/config.ts';
import { addMissing } from '../settings/add-missing.ts';
import { type Config, type Flags, type LoadedConfig, loadConfig } from '../settings/config.ts';
import { requireServable } from '../settings/servable.ts';

export interface ConfigFlags extends Flags {
  readonly json?: boolean;
}

/** A setting as it is shown: a secret is shown as `[secret]`, and a URL without user and query. */
interface Shown {
  readonly value: unknown;
  readonly origin: string;
}

/**
 * Writes the settings to stdout. No file is made.
 *
 * @throws Refusal when a setting is wrong, or a server with these settings would not start, after they are printed.
 */
export async function config({ json = false, ...flags }: ConfigFlags): Promise<void> {
  const loaded = loadConfig({ flags, listens: true });
  for (const line of loaded.warnings) tell(line);
  const settings = shownSettings(loaded);
  const { file = null, configDir, dataDir = null, workDir, hub } = loaded.config;
  const all = {
    file,
    config_dir: configDir,
    data_dir: dataDir,
    work_dir: workDir,
    hub: shownHub(hub),
    settings: Object.fromEntries(settings),
  };
  process.stdout.write(json ? `${JSON.stringify(all, null, 2)}\n` : table(loaded.config, settings));
  for (const line of requireServable(loaded.config)) tell(line);
}

/**
 * Adds `listen` and `device` to an `svc.json` that lacks them, and writes a line that names the added settings.
 *
 * @throws Refusal when the file is wrong, or cannot be read or written.
 */
export async function addMissingSettings(file: string): Promise<void> {
  const path = resolve(file);
  const added = addMissing(path);
  if (added.length > 0) process.stdout.write(`${path}: added ${added.join(' and ')}\n`);
}

function shownSettings({ config, origins }: LoadedConfig): (readonly [ConfigKey, Shown])[] {
  const keys = Object.keys(ConfigSchema.properties) as ConfigKey[];
  return keys.map((key) => [key, { value: shownValue(config, key), origin: origins.get(key) ?? 'default' }]);
}

function shownHub({ endpoint, token, isOffline, cache }: Config['hub']): Readonly<Record<string, unknown>> {
  return { endpoint: publicSource(endpoint), token: token ?? null, offline: isOffline, cache };
}

function shownValue(config: Config, key: ConfigKey): unknown {
  if (key === 'listen') return formatAddress(config.listen);
  if (key === 'password') return config.password?.toJSON() ?? null;
  const name = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()) as keyof Config;
  const value = config[name];
  return typeof value === 'string' ? publicSource(value) : value;
}

function table({ file, workDir, hub }: Config, settings: readonly (readonly [ConfigKey, Shown])[]): string {
  const rows = settings.map(([key, { value, origin }]) => [key, text(value), origin] as const);
  const [keys, values] = [0, 1].map((column) => Math.max(...rows.map((row) => row[column as 0 | 1].length)));
  const lines = rows.map(([key, value, origin]) => `${key.padEnd(keys ?? 0)}  ${value.padEnd(values ?? 0)}  ${origin}`);
  const hubLine = Object.entries(shownHub(hub)).map(([key, value]) => `${key} ${text(value)}`);
  const head = `settings: ${printable(file ?? `no svc.json in ${workDir}`)}`;
  return [head, '', ...lines, '', `hub: ${hubLine.join(', ')}`, ''].join('\n');
}

/** Returns the value of a setting as text; a dash when it is empty or not set. */
function text(value: unknown): string {
  const items = [value].flat().filter((item) => item !== null);
  return printable(items.map(String).join(', ')) || '-';
}
