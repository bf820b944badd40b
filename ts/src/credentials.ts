/**
 * The API keys and the dashboard password of a server: whether they are needed, where they come from, and the files that
 * are generated when nobody set one.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isLoopback } from './address.ts';
import { type Config, PUBLISHED_PASSWORD } from './config.ts';
import { canMakeFiles, createExclusively, errorCode } from './exclusive-file.ts';
import { Refusal } from './refusal.ts';
import { Secret } from './secret.ts';

export { Secret } from './secret.ts';

/** What guards a route, decided once at the start. */
export interface Credential {
  /** Any of these opens the route; empty when nothing is checked. */
  readonly secrets: readonly Secret[];
  /** One line for the log: whether it is required or off, and why. */
  readonly status: string;
  /** One line each. */
  readonly warnings: readonly string[];
  /** Present when this start generated it: what to show once, see `announcement`. */
  readonly generated?: GeneratedCredential;
}

export interface GeneratedCredential {
  /** `API key` or `Dashboard password`. */
  readonly name: string;
  readonly secret: Secret;
  /** Absolute path. */
  readonly file: string;
}

/** What tells one kind of credential from another. */
interface Kind {
  /** As the log says it, and as the message that refuses a short one does. */
  readonly title: string;
  readonly name: string;
  readonly file: string;
  readonly variable: string;
  readonly minCharacters: number;
  readonly allowed: RegExp;
  /** What is wrong with one that is not allowed, and why. */
  readonly mistake: string;
}

const API_KEY: Kind = {
  title: 'API key',
  name: 'api key',
  file: 'svc.api-key',
  variable: 'SVC_API_KEY',
  minCharacters: 16,
  allowed: /^[!-~]*$/,
  mistake: 'has a space or a character that is not ASCII; no Bearer header carries it',
};

const PASSWORD: Kind = {
  title: 'Dashboard password',
  name: 'dashboard password',
  file: 'svc.password',
  variable: 'SVC_PASSWORD',
  minCharacters: 1,
  allowed: /^[^\p{Cc}\p{Zl}\p{Zp}]*$/u,
  mistake: 'has a line break or another control character; Basic auth does not carry it',
};

export interface ResolveOptions {
  /** False: a credential that is needed and not there is not made; its status says where it will be. */
  readonly create?: boolean;
}

/** Read and write permission of everyone but the owner. */
const OTHERS = 0o066;

/**
 * The API keys that open the decision routes: those that are set, else the generated one where the server listens beyond
 * loopback, else none.
 *
 * @throws Refusal when a key is too short, or one is needed and can neither be read nor written.
 */
export function resolveApiKeys(config: Config, options: ResolveOptions = {}): Credential {
  const { apiKey, listen } = config;
  if (config.allowNoApiKey) {
    const warnings = apiKey.map(({ origin }) => `the api key from ${origin} is not checked: allow_no_api_key is on`);
    return { secrets: [], status: 'API key off: allow_no_api_key is on', warnings: [...new Set(warnings)] };
  }
  if (apiKey.length > 0) return fromSettings(API_KEY, apiKey);
  if (isLoopback(listen.host)) {
    return { secrets: [], status: `API key off: ${listen.host} is loopback and no key is set`, warnings: [] };
  }
  return fromFile(API_KEY, config, options);
}

/**
 * The dashboard password: the one that is set, else the generated one.
 *
 * @throws Refusal when it can neither be read nor written.
 */
export function resolvePassword(config: Config, options: ResolveOptions = {}): Credential {
  if (config.allowNoPassword) {
    return { secrets: [], status: 'Dashboard password off: allow_no_password is on', warnings: [] };
  }
  return config.password === undefined
    ? fromFile(PASSWORD, config, options)
    : fromSettings(PASSWORD, [config.password]);
}

/** What a start that generated a credential says of it: the value on a terminal, else the file and a fingerprint. */
export function announcement(generated: GeneratedCredential, isTerminal: boolean): string {
  const { name, secret, file } = generated;
  if (isTerminal) return `${name}, shown only now: ${secret.reveal()} (kept in ${file})`;
  return `${name} generated: ${file}, sha256 ${secret.fingerprint()}`;
}

function fromSettings(kind: Kind, secrets: readonly Secret[]): Credential {
  for (const secret of secrets) requireUsable(kind, secret);
  return { secrets, status: `${kind.title} required: set in ${secrets[0]?.origin}`, warnings: [] };
}

function fromFile(kind: Kind, config: Config, { create = true }: ResolveOptions): Credential {
  const folders = [config.configDir, config.dataDir, config.workDir].filter((folder) => folder !== undefined);
  const paths = [...new Set(folders)].map((folder) => join(folder, kind.file));
  const found =
    first(paths, (path) => readKept(kind, path)) ?? first(paths, (path) => (create ? generate : announce)(kind, path));
  if (found !== undefined) return found;
  throw new Refusal(`${kind.file}: no folder to write it to: set ${kind.variable}, or SVC_DATA to a writable folder`);
}

function first<Item, Found>(items: readonly Item[], find: (item: Item) => Found | undefined): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What `generate` would do. Undefined when the folder cannot be written. */
function announce(kind: Kind, path: string): Credential | undefined {
  if (!canMakeFiles(dirname(path))) return undefined;
  return { secrets: [], status: `${kind.title} required: the first start makes ${path}`, warnings: [] };
}

/** Undefined when the folder cannot be written. */
function generate(kind: Kind, path: string): Credential | undefined {
  const secret = new Secret(randomBytes(24).toString('hex'), path);
  let isMade: boolean;
  try {
    isMade = createExclusively({ path, text: `${secret.reveal()}\n`, mode: 0o600 });
  } catch (error) {
    if (errorCode(error) === '') throw error;
    return undefined;
  }
  // Another process may have been first: what the file holds is what counts.
  const kept = readKept(kind, path);
  return kept && isMade ? { ...kept, generated: { name: kind.title, secret, file: path } } : kept;
}

function readKept(kind: Kind, path: string): Credential | undefined {
  const file = readWithMode(path);
  if (file === undefined) return undefined;
  const secret = new Secret(file.text.trim(), path);
  if (kind === PASSWORD && secret.matches(PUBLISHED_PASSWORD)) {
    throw new Refusal(`${path}: holds the published default password; delete the file to get a new one`);
  }
  requireUsable(kind, secret);
  const isOpen = process.platform !== 'win32' && (file.mode & OTHERS) !== 0;
  return {
    secrets: [secret],
    status: `${kind.title} required: kept in ${path}, sha256 ${secret.fingerprint()}`,
    warnings: isOpen ? [`${path}: others than its owner have access to it; run chmod 600`] : [],
  };
}

/** Undefined when there is no such file. One that cannot be read is not replaced by another in the next folder. */
function readWithMode(path: string): { readonly text: string; readonly mode: number } | undefined {
  try {
    const descriptor = openSync(path, 'r');
    try {
      return { text: readFileSync(descriptor, 'utf8'), mode: fstatSync(descriptor).mode };
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new Refusal(`${path}: cannot be read (${code})`);
  }
}

function requireUsable({ name, minCharacters, allowed, mistake }: Kind, secret: Secret): void {
  const { origin, length } = secret;
  if (length < minCharacters) {
    throw new Refusal(`${name} from ${origin} is ${length} characters; use at least ${minCharacters}`);
  }
  if (allowed.test(secret.reveal())) return;
  throw new Refusal(`${name} from ${origin} ${mistake}`);
}
