/**
 * The API keys and the dashboard password of a server: whether they are needed, where they come from, and the files
 * that are generated when none is set.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import { createExclusively, makeProblem } from '../files/exclusive-file.ts';
import { diskFault, errorCode } from '../files/system-error.ts';
import { type Address, formatAddress, isPrivate } from '../network/address.ts';
import { Refusal } from '../refusal.ts';
import { type Config, PUBLISHED_PASSWORD } from './config.ts';
import { MIN_EXPOSED_PASSWORD_CHARACTERS } from './container.ts';
import { Secret } from './secret.ts';

export { Secret } from './secret.ts';

/** The credential that guards a route, decided once at the start. */
export interface Credential {
  /** The secrets, any of which opens the route; empty when nothing is checked. */
  readonly secrets: readonly Secret[];
  /** One line for the log: whether the credential is required or off, and why. */
  readonly status: string;
  /** The warnings for the log, one line each. */
  readonly warnings: readonly string[];
  /** The generated credential, to be shown once, see `announcement`; present when this start generated it. */
  readonly generated?: GeneratedCredential;
}

interface GeneratedCredential {
  /** The title of the credential: `API key` or `Dashboard password`. */
  readonly name: string;
  readonly secret: Secret;
  /** Absolute path of the file that holds it. */
  readonly file: string;
}

/** The properties of one kind of credential. */
interface Kind {
  /** The kind as the log names it; `name` is for the messages that refuse one. */
  readonly title: string;
  readonly name: string;
  readonly file: string;
  readonly variable: string;
  readonly minCharacters: number;
  readonly allowed: RegExp;
  /** The fault of a value that is not allowed, and why it is one. */
  readonly mistake: string;
  /** The condition under which so many characters are required; empty where they always are. */
  readonly minReason?: string;
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

/** The password where other machines can try passwords: a password that they would soon find protects nothing. */
const EXPOSED_PASSWORD: Kind = {
  ...PASSWORD,
  minCharacters: MIN_EXPOSED_PASSWORD_CHARACTERS,
  minReason: ' where other machines can connect',
};

interface ResolveOptions {
  /** If false, a needed credential that does not exist is not made; its status says where it will be. */
  readonly create?: boolean;
}

/** The bits of read and write permission for everyone but the owner. */
const OTHERS = 0o066;

/** The longest file of a credential. No key or password is so long; a longer one may be something else, or endless. */
const MAX_FILE_BYTES = 4096;

/**
 * Returns the API keys that open the decision routes: the keys that are set, else the generated key where the server
 * listens beyond loopback, else none.
 *
 * @throws Refusal when a key is too short, or when a key is needed and can neither be read nor written.
 */
export function resolveApiKeys(config: Config, options: ResolveOptions = {}): Credential {
  const { apiKey, listen } = config;
  if (config.allowNoApiKey) {
    const warnings = apiKey.map(({ origin }) => `the api key from ${origin} is not checked: allow_no_api_key is on`);
    return { secrets: [], status: 'API key off: allow_no_api_key is on', warnings: [...new Set(warnings)] };
  }
  if (apiKey.length > 0) return fromSettings(API_KEY, apiKey);
  if (isPrivate(listen)) {
    return { secrets: [], status: `API key off: ${privacy(listen)} and no key is set`, warnings: [] };
  }
  return fromFile(API_KEY, config, options);
}

/**
 * Returns the dashboard password: the one that is set, else the generated one.
 *
 * @throws Refusal when the password can neither be read nor written, or is too short for where the server can be
 * reached from.
 */
export function resolvePassword(config: Config, options: ResolveOptions = {}): Credential {
  if (config.allowNoPassword) {
    return { secrets: [], status: 'Dashboard password off: allow_no_password is on', warnings: [] };
  }
  const isExposed = config.isContainer || !isPrivate(config.listen);
  const kind = isExposed ? EXPOSED_PASSWORD : PASSWORD;
  return config.password === undefined ? fromFile(kind, config, options) : fromSettings(kind, [config.password]);
}

/** Returns the reason why an address needs no key. */
function privacy(listen: Address): string {
  return 'socket' in listen ? `only its owner can connect to ${formatAddress(listen)}` : `${listen.host} is loopback`;
}

/** Returns the line about a generated credential: with the value on a terminal, else the file and a fingerprint. */
export function announcement(generated: GeneratedCredential, isTerminal: boolean): string {
  const { name, secret, file } = generated;
  if (isTerminal) return `${name}, shown only now: ${secret.reveal()} (kept in ${file})`;
  return `${name} generated: ${file}, sha256 ${secret.fingerprint()}`;
}

function fromSettings(kind: Kind, secrets: readonly Secret[]): Credential {
  for (const secret of secrets) requireUsable(kind, secret);
  return { secrets, status: `${kind.title} required: set in ${secrets[0]?.origin}`, warnings: [] };
}

/**
 * Returns the credential of the first folder that has it or can be written. A later folder is looked into only when no
 * file can be kept in the folders before it, so two servers with settings of their own never share a file by accident.
 */
function fromFile(kind: Kind, config: Config, { create = true }: ResolveOptions): Credential {
  const problems: string[] = [];
  for (const place of places(kind, config)) {
    const found = readKept(kind, place) ?? (create ? generate(kind, place) : announce(kind, place));
    if (typeof found !== 'string') return found;
    problems.push(found);
  }
  throw notWritable(kind, places(kind, config), problems);
}

function notWritable({ file, variable }: Kind, places: readonly Place[], codes: readonly string[]): Refusal {
  const whys = places.map(({ folder }, index) => `${folder} (${diskFault(codes[index] ?? '')})`);
  return new Refusal(
    `${file}: cannot be written to ${whys.join(' or ')}; set ${variable}, or SVC_DATA to a writable folder`,
  );
}

/** A place where the file may be. */
interface Place {
  readonly folder: string;
  /** Absolute path of the file. */
  readonly path: string;
  /** Whether the file may be a link, as mounted secrets are. In the working folder anybody may have put a link. */
  readonly isLinkFollowed: boolean;
}

function places({ file }: Kind, { configDir, dataDir, workDir }: Config): Place[] {
  const chosen = new Set([configDir, ...(dataDir === undefined ? [] : [dataDir])]);
  return [...new Set([...chosen, workDir])].map((folder) => ({
    folder,
    path: join(folder, file),
    isLinkFollowed: chosen.has(folder),
  }));
}

/** Returns the credential that `generate` would make, or the code of the error when the folder cannot be written. */
function announce(kind: Kind, { folder, path }: Place): Credential | string {
  const problem = makeProblem(folder);
  if (problem !== undefined) return problem;
  return { secrets: [], status: `${kind.title} required: the first start makes ${path}`, warnings: [] };
}

/** Makes a credential and returns it, or the code of the error when the folder cannot be written. */
function generate(kind: Kind, place: Place): Credential | string {
  const { path } = place;
  const secret = new Secret(randomBytes(24).toString('hex'), path);
  let isMade: boolean;
  try {
    isMade = createExclusively({ path, text: `${secret.reveal()}\n`, mode: 0o600 });
  } catch (error) {
    if (errorCode(error) === '') throw error;
    return errorCode(error);
  }
  // Another process may have been first, so the content of the file counts.
  const kept = readKept(kind, place);
  if (kept === undefined) throw new Refusal(`${path}: is a link to nothing; remove it`);
  return isMade ? { ...kept, generated: { name: kind.title, secret, file: path } } : kept;
}

function readKept(kind: Kind, place: Place): Credential | undefined {
  const { path } = place;
  const file = readPlainFile(place);
  if (file === undefined) return undefined;
  const secret = new Secret(file.text.trim(), path);
  if (kind.file === PASSWORD.file && secret.matches(PUBLISHED_PASSWORD)) {
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

interface KeptFile {
  readonly text: string;
  readonly mode: number;
}

/**
 * Returns the file, or undefined when there is no such file. A file that cannot be read, or that somebody else may have
 * put there, is not replaced by another in the next folder: it refuses the start.
 *
 * @throws Refusal for such a file.
 */
function readPlainFile({ path, isLinkFollowed }: Place): KeptFile | undefined {
  try {
    // The system is also asked to follow no link when it opens the file, but Windows cannot be asked.
    if (!isLinkFollowed && lstatSync(path).isSymbolicLink()) throw linkRefusal(path);
    return readTrusted(path, isLinkFollowed);
  } catch (error) {
    const code = errorCode(error);
    if (error instanceof Refusal) throw error;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'ELOOP' && !isLinkFollowed) throw linkRefusal(path);
    throw new Refusal(`${path}: cannot be read (${code})`);
  }
}

function linkRefusal(path: string): Refusal {
  return new Refusal(`${path}: is a link, and none is followed in the working folder; remove it`);
}

function readTrusted(path: string, isLinkFollowed: boolean): KeptFile {
  const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;
  // Without `O_NONBLOCK` the opening of a pipe would wait for its writer.
  const descriptor = openSync(path, O_RDONLY | O_NONBLOCK | (isLinkFollowed ? 0 : O_NOFOLLOW));
  try {
    const stats = fstatSync(descriptor);
    requireTrusted(path, stats);
    return { text: readBounded(path, descriptor), mode: stats.mode };
  } finally {
    closeSync(descriptor);
  }
}

/** Refuses a file that another user may have written: the person who can write the file decides who gets in. */
function requireTrusted(path: string, stats: Stats): void {
  if (!stats.isFile()) throw new Refusal(`${path}: is not a regular file`);
  const own = process.geteuid?.();
  if (own === undefined || stats.uid === own || stats.uid === 0) return;
  throw new Refusal(`${path}: belongs to user ${stats.uid}, neither to the user of the server (${own}) nor to root`);
}

function readBounded(path: string, descriptor: number): string {
  const bytes = Buffer.alloc(MAX_FILE_BYTES + 1);
  let length = 0;
  for (let read = 1; read > 0 && length < bytes.length; length += read) {
    read = readSync(descriptor, bytes, length, bytes.length - length, null);
  }
  if (length > MAX_FILE_BYTES) throw new Refusal(`${path}: is longer than ${MAX_FILE_BYTES} bytes`);
  return bytes.toString('utf8', 0, length);
}

function requireUsable(kind: Kind, secret: Secret): void {
  const { name, minCharacters, minReason = '', allowed, mistake } = kind;
  const { origin, length } = secret;
  if (length < minCharacters) {
    throw new Refusal(`${name} from ${origin} is ${length} characters; use at least ${minCharacters}${minReason}`);
  }
  if (allowed.test(secret.reveal())) return;
  throw new Refusal(`${name} from ${origin} ${mistake}`);
}
