/**
 * The settings of the process: `svc.json`, then the environment, then flags, checked and frozen into one object.
 * No other file reads the environment, and only `add-missing.ts` also reads `svc.json`.
 */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser';
import { Check } from 'typebox/schema';
import { createExclusively } from '../files/exclusive-file.ts';
import { errorCode } from '../files/system-error.ts';
import { type Address, parseAddress } from '../network/address.ts';
import { Refusal, WrongUsage } from '../refusal.ts';
import { type ConfigFile, type ConfigKey, ConfigSchema, settingSchema, wantedValue } from '../schemas/config.ts';
import { nearestName } from '../schemas/nearest.ts';
import { CONTAINER_LISTEN, requireContainerCredentials } from './container.ts';
import { hostAndPort } from './host-and-port.ts';
import { type HubSettings, type HubVariables, hubSettings } from './hub.ts';
import { withMode } from './listen-mode.ts';
import { Secret } from './secret.ts';
import { unknownVariables, unusedPort, variableOf } from './variables.ts';

/** The password that older releases shipped in their `svc.json`. Everyone knows it, so it counts as none. */
export const PUBLISHED_PASSWORD = 'adminadmin';

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

type PlainKey = Exclude<ConfigKey, 'listen' | 'api_key' | 'password'>;
type PlainSettings = { readonly [Key in PlainKey as CamelCase<Key>]: Readonly<ConfigFile[Key]> };

/** All settings, checked. The object and its values are frozen. */
export interface Config extends PlainSettings {
  readonly listen: Address;
  /** The API keys; empty when no key is set. */
  readonly apiKey: readonly Secret[];
  readonly password: Secret | undefined;
  /** Absolute path of the `svc.json` that was read or made. */
  readonly file: string | undefined;
  /** The folder of `svc.json`, even when the file does not exist. */
  readonly configDir: string;
  /** Absolute path of `$SVC_DATA`, a second place for generated credential files. */
  readonly dataDir: string | undefined;
  /** Absolute path of the folder for fetched models: `$SVC_DATA/models`, else a folder among the user's caches. */
  readonly modelCache: string;
  /** The hub that models come from by name, from `HF_*` variables. */
  readonly hub: HubSettings;
  readonly workDir: string;
  /**
   * Whether the process runs in the container image, where other machines can connect whatever the listen address is.
   */
  readonly isContainer: boolean;
}

/** The flags of the command line, as typed. */
export interface Flags {
  readonly config?: string;
  readonly listen?: string;
  /** The host and the port of the listen address, each in place of the one that the other settings name. */
  readonly host?: string;
  readonly port?: string;
  readonly device?: string;
  readonly model?: string;
  readonly modelFile?: string;
  readonly runtime?: string;
  readonly threads?: string;
  readonly parallel?: string;
  readonly logLevel?: string;
  readonly logFormat?: string;
}

export interface Environment extends HubVariables {
  readonly SVC_CONFIG?: string | undefined;
  readonly SVC_DATA?: string | undefined;
  readonly SVC_PASSWORD?: string | undefined;
  /** `1` in the container image, whose entrypoint sets it: see `container.ts`. */
  readonly SVC_CONTAINER?: string | undefined;
  readonly GATE_API_KEY?: string | undefined;
  readonly GATE_UPSTREAM_KEY?: string | undefined;
  /** A port that hosts of programs set. The server only warns of it. */
  readonly PORT?: string | undefined;
  /** The command of npm that has started the process: `exec` for npx, `start` in a clone. */
  readonly npm_command?: string | undefined;
  readonly npm_package_name?: string | undefined;
  readonly LOCALAPPDATA?: string | undefined;
}

export interface ConfigSources {
  readonly flags?: Flags;
  readonly env?: Environment;
  readonly cwd?: string;
  /** Whether to write an `svc.json` with the defaults where there is none and the folder can be written. */
  readonly create?: boolean;
  /** Whether the settings are for a server, which listens: a `PORT` without an effect is then worth a warning. */
  readonly listens?: boolean;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The warnings, one line each. */
  readonly warnings: readonly string[];
  /** Absolute path of the `svc.json` that this call made. */
  readonly created: string | undefined;
  /** The source of each value that is not a default: `svc.json`, `SVC_THREADS`, `--threads`, `container image`. */
  readonly origins: ReadonlyMap<ConfigKey, string>;
}

/** One value from one source. */
interface Setting {
  readonly value: unknown;
  /** The source and the key, as the person who set it knows them: `svc.json: threads`, `SVC_THREADS`, `--threads`. */
  readonly where: string;
  /** The source of a credential: `svc.json`, `SVC_API_KEY`. */
  readonly origin: string;
  /** The folder that a relative path starts from. */
  readonly base: string;
  /** The description of a right value, set when it differs from that for the file. */
  readonly wanted?: string;
}

type Settings = Map<ConfigKey, Setting>;

/** Returns the environment variables of this process, for parts that have settings of their own. */
export function processEnvironment(): Environment {
  return process.env;
}

/**
 * Returns the settings of this process, from `svc.json`, `env` and `flags`, the later ones winning, with a warning for
 * each entry in them that has no effect.
 *
 * @throws Refusal when a value is wrong, the file cannot be read, or the container image lacks what it needs to serve.
 */
export function loadConfig(sources: ConfigSources = {}): LoadedConfig {
  const { flags = {}, cwd = process.cwd(), create = false, listens = create } = sources;
  const env = sources.env ?? processEnvironment();
  const isContainer = env.SVC_CONTAINER === '1';
  const warnings = unknownVariables(env);
  const chosen = flags.config ?? (env.SVC_CONFIG || undefined);
  const path = resolve(cwd, chosen ?? 'svc.json');
  const text = readConfigFile(path, chosen !== undefined);
  const layers = [
    isContainer ? imageSettings() : noSettings(),
    text === undefined ? noSettings() : fileSettings(path, text, { isContainer, warnings }),
    environmentSettings(env, cwd),
    flagSettings(flags, cwd),
  ];
  const settings: Settings = new Map(layers.flatMap((layer) => meantSettings(layer, warnings)));
  const address = hostAndPort(flags, listenAddress(settings));
  if (address !== undefined) settings.set('listen', { ...address, base: cwd });
  const plain = plainSettings(settings);
  const listen = Object.freeze(withMode(listenAddress(settings), plain.listenMode));
  const ofPort = listens ? unusedPort(env, listen) : undefined;
  if (ofPort !== undefined) warnings.push(ofPort);
  const dataDir = env.SVC_DATA ? resolve(cwd, env.SVC_DATA) : undefined;
  const checked = {
    ...plain,
    listen,
    apiKey: Object.freeze(apiKeys(settings.get('api_key'))),
    password: password(settings.get('password')),
    file: text === undefined ? undefined : path,
    configDir: dirname(path),
    dataDir,
    modelCache: join(dataDir ?? join(userCache(env), 'svc'), 'models'),
    hub: hubSettings(env, { cwd, dataDir }),
    workDir: resolve(cwd),
    isContainer,
  };
  if (isContainer && create) requireContainerCredentials(checked, isPublishedPassword(env));
  const created = text === undefined && create ? createConfigFile(path, isContainer) : undefined;
  const config = Object.freeze({ ...checked, file: checked.file ?? created });
  const origins = new Map([...settings].map(([key, { origin }]) => [key, origin]));
  return { config, warnings, created, origins };
}

/** Whether `SVC_PASSWORD` is the published default password. */
export function isPublishedPassword({ SVC_PASSWORD }: Environment): boolean {
  return SVC_PASSWORD === PUBLISHED_PASSWORD;
}

/** Returns the folder in which the system keeps the files that programs can make again. */
function userCache({ LOCALAPPDATA, XDG_CACHE_HOME }: Environment): string {
  if (process.platform === 'win32') return LOCALAPPDATA || join(homedir(), 'AppData', 'Local');
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches');
  return XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : join(homedir(), '.cache');
}

function noSettings(): Settings {
  return new Map();
}

/** Returns the settings of the image. Its listen address is a default, which any other setting overrides. */
function imageSettings(): Settings {
  const setting = { value: CONTAINER_LISTEN, where: 'container image: listen', origin: 'container image', base: '/' };
  return new Map([['listen', setting]]);
}

function readConfigFile(path: string, wasAskedFor: boolean): string | undefined {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw new Refusal(`${path}: cannot be read (${errorCode(error)})`);
    if (wasAskedFor) throw new Refusal(`${path}: no such file`);
    return undefined;
  }
}

interface FileOptions {
  readonly isContainer: boolean;
  readonly warnings: string[];
}

function fileSettings(path: string, text: string, { isContainer, warnings }: FileOptions): Settings {
  const origin = basename(path);
  const settings: Settings = new Map();
  for (const [key, value] of Object.entries(parseObject(origin, text))) {
    if (isConfigKey(key)) settings.set(key, { value, where: `${origin}: ${key}`, origin, base: dirname(path) });
    else warnings.push(`${origin}: unknown key ${JSON.stringify(key)}${meantKey(key)}`);
  }
  // A generated file holds the defaults of the place where it was made, which may be outside of the image.
  if (isContainer && settings.get('generated')?.value === true) {
    const listen = settings.get('listen')?.value;
    if (![undefined, CONTAINER_LISTEN, settingSchema('listen').default].includes(listen)) {
      warnings.push(`${origin}: listen is not taken from a generated file; remove "generated" to make the file yours`);
    }
    settings.delete('listen');
  }
  return settings;
}

/** Returns a clause that asks for the key which may be meant; empty when none is near. */
function meantKey(key: string): string {
  const nearest = nearestName(key, configKeys());
  return nearest === undefined ? '' : `; is ${nearest} meant?`;
}

/**
 * Returns the object in the text of an `svc.json`. `JSON.parse` is not used, since it does not say where an error is
 * and quotes the text, which may hold a secret.
 *
 * @throws Refusal that names the file as `name` and says where the text is no JSON.
 */
export function parseObject(name: string, text: string): object {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { disallowComments: true, allowTrailingComma: false });
  const first = errors[0];
  if (first !== undefined) {
    const before = text.slice(0, first.offset).split('\n');
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    throw new Refusal(`${name}: invalid JSON at ${place}: ${spacedWords(printParseErrorCode(first.error))}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Refusal(`${name}: must be a JSON object`);
  }
  return value;
}

/** Returns `CommaExpected` as `comma expected`. */
function spacedWords(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

function environmentSettings(env: Environment, cwd: string): Settings {
  const settings: Settings = new Map();
  for (const key of configKeys()) {
    const name = variableOf(key);
    if (name === undefined) continue;
    const text = key === 'password' ? env[name] : env[name]?.trim();
    if (text) settings.set(key, textSetting(key, name, text, cwd));
  }
  return settings;
}

function flagSettings(flags: Flags, cwd: string): Settings {
  const settings: Settings = new Map();
  for (const key of configKeys()) {
    const text = (flags as Readonly<Record<string, string | undefined>>)[camelCase(key)];
    if (text !== undefined) settings.set(key, textSetting(key, `--${key.replaceAll('_', '-')}`, text, cwd));
  }
  return settings;
}

function textSetting(key: ConfigKey, name: string, text: string, cwd: string): Setting {
  const { type, anyOf = [] } = settingSchema(key);
  const setting = { value: text as unknown, where: name, origin: name, base: cwd };
  if (type === 'integer' || anyOf.some((choice) => choice.type === 'integer')) {
    return /^\d+$/.test(text) ? { ...setting, value: Number(text) } : setting;
  }
  if (type === 'array') return { ...setting, value: text.split(',').map((item) => item.trim()) };
  if (type !== 'boolean') return setting;
  const value = new Map([
    ['1', true],
    ['true', true],
    ['0', false],
    ['false', false],
  ]).get(text);
  return { ...setting, value: value ?? text, wanted: '1, true, 0 or false' };
}

/** Checks the settings of one layer, and returns all but empty credentials and the published password. */
function meantSettings(layer: Settings, warnings: string[]): [ConfigKey, Setting][] {
  return [...layer].filter(([key, setting]) => {
    requireValid(key, setting);
    const published = key === 'password' && setting.value === PUBLISHED_PASSWORD;
    if (published) warnings.push(`${setting.where}: the published default password counts as none`);
    return !published && !isEmptyCredential(key, setting.value);
  });
}

function requireValid(key: ConfigKey, { value, where, wanted }: Setting): void {
  const isValid = Check(settingSchema(key), value) && (key !== 'listen' || parseAddress(String(value)));
  if (isValid) return;
  const Kind = where.startsWith('--') ? WrongUsage : Refusal;
  const ofPort = where === '--listen' && /^\d{1,5}$/.test(String(value)) ? `; a port alone is --port ${value}` : '';
  throw new Kind(`${where}: must be ${wanted ?? wantedValue(key)}${ofPort}`);
}

function isEmptyCredential(key: ConfigKey, value: unknown): boolean {
  if (key !== 'api_key' && key !== 'password') return false;
  return Array.isArray(value) ? value.length === 0 : String(value).trim() === '';
}

function plainSettings(settings: Settings): PlainSettings {
  const keys = configKeys().filter((key) => key !== 'listen' && key !== 'api_key' && key !== 'password');
  const entries = keys.map((key) => {
    const setting = settings.get(key);
    const value = setting === undefined ? settingSchema(key).default : setting.value;
    const path = key === 'model' || key === 'runtime' ? absolutePath(String(value), setting?.base) : undefined;
    return [camelCase(key), path ?? (Array.isArray(value) ? Object.freeze([...value]) : value)] as const;
  });
  return Object.fromEntries(entries) as unknown as PlainSettings;
}

/**
 * Returns a path as an absolute path. An address such as `s3://bucket/model` or `hf:org/name` is no path and stays as
 * it is.
 */
function absolutePath(text: string, base = '.'): string {
  return text === '' || /^([a-z][a-z0-9+.-]+:\/\/|hf:)/i.test(text) ? text : resolve(base, text);
}

function listenAddress(settings: Settings): Address {
  const text = String(settings.get('listen')?.value ?? settingSchema('listen').default);
  const address = parseAddress(text);
  if (address === undefined) throw new Refusal(`listen: must be ${wantedValue('listen')}`);
  return address;
}

/** Returns the API keys without spaces at their ends, which the value of a header would lose. */
function apiKeys(setting: Setting | undefined): Secret[] {
  if (setting === undefined) return [];
  return [setting.value].flat().map((value) => new Secret(String(value).trim(), setting.origin));
}

function password(setting: Setting | undefined): Secret | undefined {
  return setting && new Secret(String(setting.value), setting.origin);
}

/**
 * Returns the settings of a new `svc.json`. Only the two keys that people change first are in it: a file with all
 * defaults would keep the defaults of the release that wrote it.
 */
export function newSettings(isContainer = false): Readonly<Record<'listen' | 'device', unknown>> {
  const [listen, device] = [settingSchema('listen').default, settingSchema('device').default];
  return { listen: isContainer ? CONTAINER_LISTEN : listen, device };
}

function createConfigFile(path: string, isContainer: boolean): string | undefined {
  try {
    return writeNewSettings(path, isContainer) ? path : undefined;
  } catch (error) {
    if (errorCode(error) === '') throw error;
    return undefined;
  }
}

/**
 * Writes a new `svc.json`, marked as generated. Returns true when it is now made, false when it was already there.
 *
 * @throws The system error when the folder cannot be written.
 */
export function writeNewSettings(path: string, isContainer = false): boolean {
  const values = { generated: true, ...newSettings(isContainer) };
  return createExclusively({ path, text: `${JSON.stringify(values, null, 2)}\n`, mode: 0o644 });
}

function configKeys(): ConfigKey[] {
  return Object.keys(ConfigSchema.properties) as ConfigKey[];
}

function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(ConfigSchema.properties, key);
}

function camelCase(key: string): string {
  return key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
