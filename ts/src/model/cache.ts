/**
 * Models from elsewhere, kept on this disk by their sha256.
 *
 *     <sha256>/entry.json   the length and digest of each file
 *     <sha256>/<name>/      the model folder
 *     <sha256>/.names/<sha256>.json a source that the model was fetched from: several may have the same model
 *     sources/<sha256>.json the last good model of a source
 *     sources/<sha256>.trial.json the model of a source that is being tried
 *     .fetch-…, .gone-…     models that are being fetched or removed
 *
 * An entry gets its name by a rename when it is complete, and loses it by a rename before it is removed, so a killed
 * process leaves no incomplete entry under a valid name. An entry is still checked whenever it is opened: disks lose
 * files that were not synced when the power fails.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { sha256Of } from '../files/sha256.ts';
import { diskFault, errorCode, isDiskFault } from '../files/system-error.ts';
import { unmadeCode } from '../files/unmade-folder.ts';
import { digestOf, digestsOf, filesIn } from './file-digest.ts';
import { modelFolderName } from './folder-names.ts';
import { isInUse, Lease } from './lease.ts';
import { namesOf } from './manifest.ts';
import { SourceError } from './source-error.ts';
import { TrialNote } from './trial-note.ts';

const ENTRY_FILE = 'entry.json';
/** A model folder cannot have this name, since it begins with a dot. */
const NAMES = '.names';
const SOURCES = 'sources';
const NAME = /^[0-9a-f]{64}$/;
const TEMPORARY = /^\.(fetch|gone)-/;

const EntrySchema = Type.Object({
  folder: Type.String({ minLength: 1 }),
  version: Type.String(),
  bytes: Type.Integer({ minimum: 0 }),
  files: Type.Record(Type.String(), Type.Object({ bytes: Type.Integer(), sha256: Type.String() })),
});

type Entry = Static<typeof EntrySchema>;

const NameSchema = Type.Object({ source: Type.String(), revisions: Type.Array(Type.String()) });

const GoodSchema = Type.Object({
  source: Type.String(),
  sha256: Type.String({ pattern: NAME.source }),
  version: Type.String(),
  etag: Type.Optional(Type.String()),
  revision: Type.Optional(Type.String()),
});

/** The last good model of a source: the one that answered last. */
type Good = Static<typeof GoodSchema>;

/** A checked model in the cache, which stays there until it is released. */
export interface CachedModel {
  readonly sha256: string;
  /** The model folder. */
  readonly folder: string;
  readonly version: string;
  release(): Promise<void>;
}

/** A source that a model was fetched from. */
export interface KeptName {
  /** The source as the settings name it, without secrets. */
  readonly source: string;
  /** Its revisions that have this model, the one that was fetched last in front; empty where there are none. */
  readonly revisions: readonly string[];
}

/** A model in the cache, as its record describes it. Its files have not been checked. */
export interface KeptModel extends Pick<CachedModel, 'sha256' | 'folder' | 'version'> {
  readonly bytes: number;
  /** The paths of its files, with `/` between their parts. */
  readonly paths: readonly string[];
  /** The sources that the model was fetched from, the latest in front: they may have the same files. */
  readonly names: readonly KeptName[];
  /** When a process last began or ended to use the model, in milliseconds since 1970. */
  readonly usedMs: number;
  /** Whether a running process uses the model. */
  readonly isInUse: boolean;
}

/** A folder that is filled from elsewhere. `remove` deletes it, except for a model that was moved into the cache. */
export interface Workspace {
  readonly folder: string;
  remove(): Promise<void>;
}

interface KeepOptions {
  /** The name that the entry gets. */
  readonly sha256: string;
  readonly signal: AbortSignal;
}

interface CacheOptions {
  readonly folder: string;
  /** The most bytes of all models together. Models that are needed stay even beyond this limit. */
  readonly maxBytes: number;
}

export class ModelCache {
  readonly #folder: string;
  readonly #maxBytes: number;

  constructor({ folder, maxBytes }: CacheOptions) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /**
   * Makes a folder to fetch into.
   *
   * @throws SourceError when the cache cannot be written.
   */
  async workspace(): Promise<Workspace> {
    const folder = this.#temporary('fetch');
    try {
      await mkdir(folder, { recursive: true });
    } catch (error) {
      throw this.#unkept(await unmadeCode(folder, error), error);
    }
    const lease = await Lease.take(folder);
    return {
      folder,
      async remove() {
        await lease?.release();
        await removeFolder(folder);
      },
    };
  }

  /** Returns the error of work in the cache, in the cache's words where its disk takes no file. */
  explained(error: unknown): unknown {
    const isKnown = error instanceof SourceError || !isDiskFault(error);
    return isKnown ? error : this.#unkept(errorCode(error), error);
  }

  #unkept(code: string, cause: unknown): SourceError {
    return new SourceError(`models cannot be kept in ${this.#folder} (${diskFault(code)}); set SVC_DATA`, { cause });
  }

  /** Moves a model folder of a workspace into the cache, complete and under its digest, unless it is there already. */
  async keep(workspace: Workspace, folder: string, options: KeepOptions): Promise<void> {
    const { sha256, signal } = options;
    const [entry, files] = [join(workspace.folder, 'entry'), await digestsOf(folder, signal)];
    const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
    // A model folder named `entry.json` would collide with the record, so it gets the default name.
    const name = modelFolderName(basename(folder) === ENTRY_FILE ? '' : basename(folder));
    await mkdir(entry);
    await rename(folder, join(entry, name));
    const { version } = await namesOf(join(entry, name));
    const record = { folder: name, version, bytes, files };
    await writeFile(join(entry, ENTRY_FILE), JSON.stringify(record));
    // A damaged entry was removed when it was looked for, so an entry that is there now was made by another process.
    await renameFolder(entry, join(this.#folder, sha256)).catch(async (error: unknown) => {
      if (!(await exists(join(this.#folder, sha256)))) throw error;
    });
  }

  /** Returns the model with this digest, every file of it checked; a damaged one is removed and counts as missing. */
  async open(sha256: string, signal?: AbortSignal): Promise<CachedModel | undefined> {
    const folder = join(this.#folder, sha256);
    if (!NAME.test(sha256) || !(await exists(folder))) return undefined;
    const lease = await Lease.take(folder);
    const entry = await checkedEntry(folder, signal);
    // An entry that was not checked to the end is not known to be damaged.
    if (entry === undefined && signal?.aborted) {
      await lease?.release();
      signal.throwIfAborted();
    }
    if (entry === undefined) {
      await lease?.release();
      // A process that uses the entry has read it before it was damaged.
      await this.#remove(folder, { evenInUse: true });
      return undefined;
    }
    return {
      sha256,
      folder: join(folder, entry.folder),
      version: entry.version,
      release: async () => lease?.release(),
    };
  }

  /** Returns the last good model of a source; undefined when none is known. */
  async lastGood(source: string): Promise<Good | undefined> {
    return readJson(GoodSchema, this.#noteOf(source));
  }

  /** Notes the last good model of a source: a later start may begin with it. */
  async remember(source: string, good: Good): Promise<void> {
    await mkdir(join(this.#folder, SOURCES), { recursive: true });
    await writeWhole(this.#noteOf(source), JSON.stringify(good));
  }

  /** Returns the note of the trials of a source's models. */
  trialNote(source: string): TrialNote {
    return new TrialNote(join(this.#folder, SOURCES, `${sha256Of(source)}.trial.json`));
  }

  /**
   * Removes the leavings of killed processes, and, while the models take too many bytes, those that have not been used
   * for longest.
   */
  async prune(needed: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.#folder);
    for (const name of names.filter((entry) => TEMPORARY.test(entry))) {
      if (!(await isInUse(join(this.#folder, name)))) await removeFolder(join(this.#folder, name));
    }
    const models = await Promise.all(names.filter((name) => NAME.test(name)).map((name) => this.#size(name)));
    let bytes = models.reduce((sum, model) => sum + model.bytes, 0);
    for (const { name, bytes: size } of models.sort((a, b) => a.usedMs - b.usedMs)) {
      if (bytes <= this.#maxBytes) return;
      const folder = join(this.#folder, name);
      if (!needed.has(name) && !(await isInUse(folder)) && (await this.#remove(folder))) bytes -= size;
    }
  }

  /** Returns all models, the one that was used last in front. */
  async kept(): Promise<KeptModel[]> {
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) => NAME.test(name));
    const models = await Promise.all(names.map((name) => this.#keptModel(name)));
    return models.flat().sort((a, b) => b.usedMs - a.usedMs);
  }

  async #keptModel(sha256: string): Promise<KeptModel[]> {
    const folder = join(this.#folder, sha256);
    const entry = await readJson(EntrySchema, join(folder, ENTRY_FILE));
    if (entry === undefined || modelFolderName(entry.folder) !== entry.folder) return [];
    const { version, bytes, files } = entry;
    const use = { usedMs: (await this.#size(sha256)).usedMs, isInUse: await isInUse(folder) };
    const model = { sha256, folder: join(folder, entry.folder), version, bytes, paths: Object.keys(files) };
    return [{ ...model, names: await namesIn(folder), ...use }];
  }

  /** Notes that a model was fetched from a source, and its revision there. */
  async addName(
    sha256: string,
    { source, revision }: { source: string; revision?: string | undefined },
  ): Promise<void> {
    const before = await readJson(NameSchema, this.#pathOfName(sha256, source));
    const others = (before?.revisions ?? []).filter((other) => other !== revision);
    await this.setName(sha256, { source, revisions: revision === undefined ? others : [revision, ...others] });
  }

  /** Notes the revisions of a source that have a model, in place of those that were known. */
  async setName(sha256: string, name: KeptName): Promise<void> {
    const path = this.#pathOfName(sha256, name.source);
    // A model that another process has removed must not come back as an empty folder.
    await mkdir(dirname(path)).catch(() => {});
    await writeWhole(path, JSON.stringify(name));
  }

  /** Removes the note that a model was fetched from a source. */
  async removeName(sha256: string, source: string): Promise<void> {
    await rm(this.#pathOfName(sha256, source), { force: true });
  }

  /** Removes a model that nobody uses; returns whether it is gone. */
  async discard(sha256: string): Promise<boolean> {
    const folder = join(this.#folder, sha256);
    return !(await isInUse(folder)) && this.#remove(folder);
  }

  /**
   * Removes the notes of the last good models of a source, which are found by the name that the source has in them.
   *
   * @param only - The model and the revisions whose notes are removed; all by default.
   */
  async forget(
    source: string,
    only?: { readonly sha256: string; readonly revisions: readonly string[] },
  ): Promise<void> {
    const folder = join(this.#folder, SOURCES);
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name);
      const good = await readJson(GoodSchema, path);
      if (good?.source !== source) continue;
      const { sha256, revision } = good;
      const isMeant = only === undefined || (only.sha256 === sha256 && only.revisions.includes(revision ?? ''));
      if (isMeant) await rm(path, { force: true });
    }
  }

  /** Returns the size and last use of an entry: making and removing leases changes the time of its folder. */
  async #size(name: string): Promise<{ name: string; bytes: number; usedMs: number }> {
    const folder = join(this.#folder, name);
    const [entry, status] = await Promise.all([
      readJson(EntrySchema, join(folder, ENTRY_FILE)),
      stat(folder).catch(() => undefined),
    ]);
    return { name, bytes: entry?.bytes ?? 0, usedMs: entry === undefined ? 0 : (status?.mtimeMs ?? 0) };
  }

  /** Removes an entry; returns whether it is gone. It comes back when a process has taken a lease meanwhile. */
  async #remove(folder: string, { evenInUse = false } = {}): Promise<boolean> {
    const gone = this.#temporary('gone');
    try {
      await rename(folder, gone);
    } catch {
      return false;
    }
    if (!evenInUse && (await isInUse(gone))) {
      await rename(gone, folder).catch(() => {});
      return false;
    }
    await removeFolder(gone);
    return true;
  }

  #pathOfName(sha256: string, source: string): string {
    return join(this.#folder, sha256, NAMES, `${sha256Of(source)}.json`);
  }

  #temporary(kind: 'fetch' | 'gone'): string {
    return join(this.#folder, `.${kind}-${randomBytes(8).toString('hex')}`);
  }

  /** Returns the path of a source's note. Its name is a digest, since the source itself may hold a secret. */
  #noteOf(source: string): string {
    return join(this.#folder, SOURCES, `${sha256Of(source)}.json`);
  }
}

/** Returns the record of an entry if its files are all there, unchanged, and no others are; otherwise undefined. */
async function checkedEntry(folder: string, signal: AbortSignal | undefined): Promise<Entry | undefined> {
  const entry = await readJson(EntrySchema, join(folder, ENTRY_FILE));
  if (entry === undefined || modelFolderName(entry.folder) !== entry.folder) return undefined;
  const model = join(folder, entry.folder);
  try {
    const found = await filesIn(model);
    if (found.length !== Object.keys(entry.files).length) return undefined;
    for (const { path, isFile } of found) {
      const wanted = Object.hasOwn(entry.files, path) ? entry.files[path] : undefined;
      if (!isFile || wanted === undefined) return undefined;
      const { sha256, bytes } = await digestOf(join(model, ...path.split('/')), signal);
      if (sha256 !== wanted.sha256 || bytes !== wanted.bytes) return undefined;
    }
    return entry;
  } catch {
    return undefined;
  }
}

async function readJson<Schema extends Type.TSchema>(
  schema: Schema,
  path: string,
): Promise<Static<Schema> | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    return Check(schema, value) ? (value as Static<Schema>) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the sources that the model of an entry was fetched from. */
async function namesIn(folder: string): Promise<KeptName[]> {
  const names = (await readdir(join(folder, NAMES)).catch(() => [])).filter((name) => name.endsWith('.json'));
  const found = names.map(async (file) => {
    const path = join(folder, NAMES, file);
    const name = await readJson(NameSchema, path);
    const { mtimeMs } = (await stat(path).catch(() => undefined)) ?? { mtimeMs: 0 };
    return name === undefined ? [] : [{ name, mtimeMs }];
  });
  const known = (await Promise.all(found)).flat().sort((a, b) => b.mtimeMs - a.mtimeMs);
  return known.map(({ name }) => name);
}

/** Writes a file that other processes see whole or not at all. */
async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await writeFile(temporary, text);
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

/** Renames a folder, with retries: on Windows a virus scanner may still have a file open that was just written. */
async function renameFolder(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await rename(from, to);
    } catch (error) {
      if (process.platform !== 'win32' || errorCode(error) !== 'EPERM' || attempt === 5) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
    }
  }
}
