/**
 * Models from elsewhere, kept on this disk by their sha256.
 *
 *     <sha256>/entry.json   the length and digest of each file
 *     <sha256>/<name>/      the model folder
 *     sources/<sha256>.json which of them was the last good one of a source
 *     sources/<sha256>.trial.json which of them is being tried
 *     .fetch-…, .gone-…     what comes and what goes
 *
 * A folder gets its name by one rename when it is whole, and loses it by one before it is removed, so a process that is
 * killed leaves nothing half done under a name that counts. What has a name is still checked whenever it is opened: disks
 * lose files that were not synced when the power goes.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { errorCode } from '../exclusive-file.ts';
import { sha256Of } from '../sha256.ts';
import { digestOf, digestsOf, filesIn } from './file-digest.ts';
import { modelFolderName } from './folder-names.ts';
import { isInUse, Lease } from './lease.ts';
import { namesOf } from './manifest.ts';
import { SourceError } from './source-error.ts';
import { TrialNote } from './trial-note.ts';

const ENTRY_FILE = 'entry.json';
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

const GoodSchema = Type.Object({
  source: Type.String(),
  sha256: Type.String({ pattern: NAME.source }),
  version: Type.String(),
  etag: Type.Optional(Type.String()),
});

/** The model of a source that answered last. */
export type Good = Static<typeof GoodSchema>;

/** A model in the cache, checked, that stays there until it is released. */
export interface CachedModel {
  readonly sha256: string;
  /** The model folder. */
  readonly folder: string;
  readonly version: string;
  release(): Promise<void>;
}

/** A folder that is filled from elsewhere, and gone when it is not kept. */
export interface Workspace {
  readonly folder: string;
  remove(): Promise<void>;
}

interface KeepOptions {
  /** The name that it gets. */
  readonly sha256: string;
  readonly signal: AbortSignal;
}

export interface CacheOptions {
  readonly folder: string;
  /** What all models together may take, but for those that are needed. */
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
      throw new SourceError(
        `models cannot be kept in ${this.#folder} (${await makeCode(folder, error)}); set SVC_DATA`,
        {
          cause: error,
        },
      );
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

  /** Takes a model folder in a workspace into the cache, whole and under its name, unless it is there. */
  async keep(workspace: Workspace, folder: string, { sha256, signal }: KeepOptions): Promise<void> {
    const [entry, files] = [join(workspace.folder, 'entry'), await digestsOf(folder, signal)];
    const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
    // One that is called as the record beside it gets the name of those without one.
    const name = modelFolderName(basename(folder) === ENTRY_FILE ? '' : basename(folder));
    await mkdir(entry);
    await rename(folder, join(entry, name));
    const { version } = await namesOf(join(entry, name));
    const record: Entry = { folder: name, version, bytes, files };
    await writeFile(join(entry, ENTRY_FILE), JSON.stringify(record));
    // One that is there and damaged has gone when it was looked for; one that is there now was made by another process.
    await renameFolder(entry, join(this.#folder, sha256)).catch(async (error: unknown) => {
      if (!(await exists(join(this.#folder, sha256)))) throw error;
    });
  }

  /** Returns the model with this digest, every file of it checked; what is damaged is removed. */
  async open(sha256: string, signal?: AbortSignal): Promise<CachedModel | undefined> {
    const folder = join(this.#folder, sha256);
    if (!NAME.test(sha256) || !(await exists(folder))) return undefined;
    const lease = await Lease.take(folder);
    const entry = await checkedEntry(folder, signal);
    // What was not looked at whole is not known to be damaged.
    if (entry === undefined && signal?.aborted) {
      await lease?.release();
      signal.throwIfAborted();
    }
    if (entry === undefined) {
      await lease?.release();
      // Whoever uses it has read it before it was damaged.
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

  /** Returns the last good model of a source. */
  async lastGood(source: string): Promise<Good | undefined> {
    return readJson(GoodSchema, this.#noteOf(source));
  }

  /** Notes the last good model of a source: a later start may begin with it. */
  async remember(source: string, good: Good): Promise<void> {
    const path = this.#noteOf(source);
    const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    await mkdir(join(this.#folder, SOURCES), { recursive: true });
    try {
      await writeFile(temporary, JSON.stringify(good));
      await rename(temporary, path);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Returns the note of the trials of a source's models. */
  trialNote(source: string): TrialNote {
    return new TrialNote(join(this.#folder, SOURCES, `${sha256Of(source)}.trial.json`));
  }

  /** Removes what nobody needs: leavings of killed processes, and the models that were not used for longest. */
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

  /** Making and removing leases changes the time of the folder, so that is when it was last used. */
  async #size(name: string): Promise<{ name: string; bytes: number; usedMs: number }> {
    const folder = join(this.#folder, name);
    const [entry, status] = await Promise.all([
      readJson(EntrySchema, join(folder, ENTRY_FILE)),
      stat(folder).catch(() => undefined),
    ]);
    return { name, bytes: entry?.bytes ?? 0, usedMs: entry === undefined ? 0 : (status?.mtimeMs ?? 0) };
  }

  /** Whether the folder is gone. A process that has taken a lease meanwhile gets it back. */
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

  #temporary(kind: 'fetch' | 'gone'): string {
    return join(this.#folder, `.${kind}-${randomBytes(8).toString('hex')}`);
  }

  /** The source itself may hold a secret. */
  #noteOf(source: string): string {
    return join(this.#folder, SOURCES, `${sha256Of(source)}.json`);
  }
}

/** The record of an entry whose files are all there, as they were, and no others. */
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

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

/** On Windows a virus scanner may still have a file open that was just written. */
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

/** Why a folder could not be made with those above it: of a read-only disk Node says that nothing is there. */
async function makeCode(folder: string, error: unknown): Promise<string> {
  const above = dirname(folder);
  if (errorCode(error) !== 'ENOENT' || above === folder) return errorCode(error);
  const cause: unknown = await mkdir(above).catch((reason: unknown) => reason);
  return cause === undefined || errorCode(cause) === 'EEXIST' ? errorCode(error) : makeCode(above, cause);
}
