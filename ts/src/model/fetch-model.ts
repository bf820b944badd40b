/** Turns the offer of a source into a checked model folder on this disk. */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sha256Of } from '../files/sha256.ts';
import { type DownloadOptions, download, downloadText, type FetchLimits, type FetchProgress } from './download.ts';
import { canBeKnown, NO_FAMILY_FILE } from './family.ts';
import { FolderNames } from './folder-names.ts';
import type { ArchiveFormat, Packaging } from './location.ts';
import { MANIFEST_FILE, MAX_MANIFEST_BYTES, type Manifest, manifestText, namesOf, parseManifest } from './manifest.ts';
import { SourceError } from './source-error.ts';
import type { Listed, Opened, Store } from './store.ts';
import { modelFolderIn, unpack } from './unpack.ts';

/** The order to fetch a model, wherever it comes from. */
export interface FetchOrder {
  /** The name of the source in messages. */
  readonly source: string;
  /** The name of the model folder where the source gives none. */
  readonly name: string;
  /** The tag of the offer that is known already. */
  readonly etag?: string | undefined;
  /** The digest that the model must have; empty takes any. */
  readonly pinned: string;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
  /** Returns whether the model with this digest is in the cache already. */
  isHere(sha256: string): Promise<boolean>;
  /** Returns an empty folder to write to; called at most once. */
  workspace(): Promise<string>;
  /** Takes note of the version that the source offers, as soon as it is known. */
  offered(version: string): void;
  readonly progress?: FetchProgress | undefined;
}

/** The order to fetch a model from a store. */
export interface FetchRequest extends FetchOrder {
  readonly store: Store;
  readonly packaging: Packaging;
}

/** The offer of a source. */
export interface Fetched {
  /** Hex sha256 of the archive, or of the manifest. */
  readonly sha256: string;
  readonly etag?: string | undefined;
  /** The revision of the source that the model belongs to, such as a commit; absent where there are none. */
  readonly revision?: string | undefined;
  /** The folder that the model was put into; absent when the model was here already. */
  readonly folder?: string;
}

/**
 * Fetches a model, unless it is the one that is known already. The whole work, unpacking included, ends after
 * `limits.totalMs`.
 *
 * @throws SourceError when there is no model, or a part of it is not as it must be. No part of it counts then.
 */
export function fetchModel(request: FetchRequest): Promise<Fetched | 'unchanged'> {
  return inTime(request, fetchPackaged);
}

/**
 * Returns what `fetch` makes of the order. Its signal fires after `limits.totalMs`.
 *
 * @throws SourceError when that takes longer.
 */
export async function inTime<Order extends FetchOrder, Result>(
  order: Order,
  fetch: (order: Order) => Promise<Result>,
): Promise<Result> {
  const { signal, source, limits } = order;
  const stop = new AbortController();
  const end = () => stop.abort(signal.reason);
  const isLate = new SourceError(`${source}: not there after ${limits.totalMs / 1000} s`, { isAway: true });
  const timer = setTimeout(() => stop.abort(isLate), limits.totalMs);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await fetch({ ...order, signal: stop.signal });
  } catch (error) {
    stop.signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

function fetchPackaged(request: FetchRequest): Promise<Fetched | 'unchanged'> {
  const fetch = new Fetch(request);
  const { packaging } = request;
  if (packaging.kind === 'archive') return fetch.archive(packaging.format);
  return packaging.kind === 'manifest' ? fetch.manifest() : fetch.folder();
}

/** The prefix of a listing's tag, which is made here: it must not be taken for a tag of the source. */
const LISTING = 'listing:';

class Fetch {
  readonly #request: FetchRequest;

  constructor(request: FetchRequest) {
    this.#request = request;
  }

  async archive(format: ArchiveFormat): Promise<Fetched | 'unchanged'> {
    const { store, source, signal, limits } = this.#request;
    const opened = await store.open(undefined, this.#request);
    if (opened === 'unchanged') return opened;
    const { etag } = opened;
    if (opened.bytes !== undefined) this.#request.progress?.expects(opened.bytes);
    const folder = await this.#workspaceFor(opened);
    const file = join(folder, 'archive');
    const { sha256 } = await download(opened, file, this.#fileOptions(source));
    requirePinned(this.#request, sha256);
    if (await this.#request.isHere(sha256)) return { sha256, etag };
    const unpacked = join(folder, this.#request.name);
    await mkdir(unpacked);
    return this.#named(async () => {
      await unpack(file, unpacked, { format, maxBytes: limits.maxBytes, signal });
      const model = await modelFolderIn(unpacked);
      this.#request.offered((await namesOf(model)).version);
      return { sha256, etag, folder: model };
    });
  }

  async manifest(): Promise<Fetched | 'unchanged'> {
    return this.#manifest(await this.#request.store.open(undefined, this.#request), this.#request.source);
  }

  /** Fetches the prefix of a bucket: by its manifest where it has one, otherwise all objects under it. */
  async folder(): Promise<Fetched | 'unchanged'> {
    const { store, source, signal, etag } = this.#request;
    const known = etag?.startsWith(LISTING) ? undefined : etag;
    const opened = await store.open(MANIFEST_FILE, { etag: known, signal }).catch((error: unknown) => {
      if (error instanceof SourceError && error.isMissing) return undefined;
      throw error;
    });
    if (opened !== undefined) return this.#manifest(opened, `${source}/${MANIFEST_FILE}`);
    return this.#listing((await store.list?.(signal)) ?? []);
  }

  async #manifest(opened: Opened | 'unchanged', what: string): Promise<Fetched | 'unchanged'> {
    if (opened === 'unchanged') return opened;
    const text = await downloadText(opened, this.#downloadOptions(what), MAX_MANIFEST_BYTES);
    const sha256 = sha256Of(text);
    const manifest = await this.#named(async () => parseManifest(text));
    this.#request.offered(manifest.version);
    requirePinned(this.#request, sha256);
    if (await this.#request.isHere(sha256)) return { sha256, etag: opened.etag };
    return { sha256, etag: opened.etag, folder: await this.#files(manifest) };
  }

  async #files({ files }: Manifest): Promise<string> {
    const { store, source, signal } = this.#request;
    requireSize(this.#request, Object.values(files));
    const folder = await this.#modelFolder();
    for (const [path, { bytes, sha256: wanted }] of Object.entries(files)) {
      const opened = await store.open(path, { signal });
      if (opened === 'unchanged') throw new SourceError(`${source}: ${path}: was not sent`);
      const digest = await this.#file(opened, { folder, path, bytes });
      if (digest !== wanted.toLowerCase())
        throw new SourceError(`${source}: ${path}: has another sha256 than the manifest says`);
    }
    return folder;
  }

  async #listing(objects: readonly Listed[]): Promise<Fetched | 'unchanged'> {
    const { store, source, signal } = this.#request;
    const etag = LISTING + sha256Of(JSON.stringify(objects.map(({ path, bytes, etag }) => [path, bytes, etag])));
    if (etag === this.#request.etag) return 'unchanged';
    if (!canBeKnown(objects.map(({ path }) => path))) {
      throw new SourceError(`${source}: it has ${NO_FAMILY_FILE}`, { isAway: true });
    }
    const names = new FolderNames();
    await this.#named(async () => objects.map(({ path }) => names.add(path, 'file')));
    requireSize(this.#request, objects);
    const folder = await this.#modelFolder();
    for (const { path, bytes, etag: wanted } of objects) {
      const opened = await store.open(path, { signal });
      if (opened === 'unchanged' || opened.etag !== wanted) {
        if (opened !== 'unchanged') opened.body.destroy();
        throw new SourceError(`${source}: ${path}: changed while it was read`);
      }
      await this.#file(opened, { folder, path, bytes });
    }
    const { version } = await this.#named(() => namesOf(folder));
    const sha256 = sha256Of(await manifestText(folder, signal));
    this.#request.offered(version);
    requirePinned(this.#request, sha256);
    return (await this.#request.isHere(sha256)) ? { sha256, etag } : { sha256, etag, folder };
  }

  /** Writes a file that is being fetched, and returns its hex sha256. */
  async #file(
    opened: Opened,
    { folder, path, bytes }: { folder: string; path: string; bytes: number },
  ): Promise<string> {
    const file = join(folder, ...path.split('/'));
    await mkdir(dirname(file), { recursive: true }).catch((error: unknown) => {
      opened.body.destroy();
      throw error;
    });
    const what = `${this.#request.source}: ${path}`;
    return (await download(opened, file, { ...this.#fileOptions(what), bytes })).sha256;
  }

  async #modelFolder(): Promise<string> {
    const folder = join(await this.#request.workspace(), this.#request.name);
    await mkdir(folder);
    return folder;
  }

  /** Returns the workspace; when there is none, the object that is being sent is not left open. */
  async #workspaceFor(opened: Opened): Promise<string> {
    try {
      return await this.#request.workspace();
    } catch (error) {
      opened.body.destroy();
      throw error;
    }
  }

  #downloadOptions(what: string): DownloadOptions {
    const { limits, signal } = this.#request;
    return { limits, signal, what };
  }

  /** Returns the options for a file of the model, whose bytes count for the person who waits. */
  #fileOptions(what: string): DownloadOptions {
    return { ...this.#downloadOptions(what), progress: this.#request.progress };
  }

  /** Returns the result of `work`; its errors get the source in front. */
  async #named<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof SourceError)
        throw new SourceError(`${this.#request.source}: ${error.message}`, { cause: error });
      throw error;
    }
  }
}

/**
 * Requires that the files together have no more bytes than a model may have, and tells the person who waits how many
 * they are.
 *
 * @throws SourceError when they have more.
 */
export function requireSize(
  { source, limits: { maxBytes }, progress }: Pick<FetchOrder, 'source' | 'limits' | 'progress'>,
  files: readonly { readonly bytes: number }[],
): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes > maxBytes) throw new SourceError(`${source}: ${bytes} bytes, the limit is ${maxBytes} (model_max_bytes)`);
  progress?.expects(bytes);
}

/**
 * Requires that a model has the digest that is set for it.
 *
 * @throws SourceError when it has another.
 */
export function requirePinned({ source, pinned }: Pick<FetchOrder, 'source' | 'pinned'>, sha256: string): void {
  if (pinned !== '' && pinned !== sha256)
    throw new SourceError(`${source}: has the sha256 ${sha256}, not that of model_sha256`);
}
