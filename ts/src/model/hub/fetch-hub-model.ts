/**
 * Turns the name of a model at a hub into a checked model folder on this disk. The files go into the hub's own cache,
 * where other programs find them, and from there by hard links into the folder.
 */
import { constants } from 'node:fs';
import { copyFile, link, mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sha256Of } from '../../files/sha256.ts';
import { isDiskFault } from '../../files/system-error.ts';
import type { FetchProgress } from '../download.ts';
import { FAMILY_FILES, knownBy, knownFamily, MAX_FAMILY_FILE_BYTES, objectIn } from '../family.ts';
import { type Fetched, type FetchOrder, inTime, requirePinned, requireSize } from '../fetch-model.ts';
import { FolderNames } from '../folder-names.ts';
import { manifestText, namesOf } from '../manifest.ts';
import { reason, SourceError } from '../source-error.ts';
import { CARD_FILE, MAX_CARD_BYTES } from './card.ts';
import { type Choice, chooseFiles, deviceKind } from './choice.ts';
import type { HubClient } from './client.ts';
import { CachedRepository } from './hub-cache.ts';
import { commitOf, filesAt, type HubFile } from './listing.ts';
import { type HubName, pathInRepository } from './name.ts';
import { transferred } from './transfer.ts';

/** A model at a hub, and the wishes of the person who names it. */
export interface HubModel {
  readonly client: HubClient;
  readonly name: HubName;
  /** The folder of the hub's cache. */
  readonly cache: string;
  /** Whether the cache alone is asked. */
  readonly isOffline: boolean;
  /** The settings `device` and `model_file`, which say what graph is taken. */
  readonly device: string;
  readonly graph: string;
}

/**
 * Fetches a model from a hub, unless it is the one that is known already.
 *
 * @throws SourceError when there is no such model, or a part of it is not as it must be. No part of it counts then.
 */
export async function fetchHubModel(order: FetchOrder, model: HubModel): Promise<Fetched | 'unchanged'> {
  try {
    return await inTime(order, (timed) => new HubFetch(timed, model).fetched());
  } catch (error) {
    order.signal.throwIfAborted();
    throw told(error, order.source, model.client);
  }
}

/** Returns the error with the name of the model in front, and without the token, which a hub may send back. */
function told(error: unknown, source: string, client: HubClient): unknown {
  // The cache of models has its own words for a fault of its disk.
  if (isDiskFault(error)) return error;
  if (!(error instanceof SourceError)) return new SourceError(client.withoutToken(`${source}: ${reason(error)}`));
  const { message, isAway, isMissing, retryMs } = error;
  const named = message.startsWith(source) ? message : `${source}: ${message}`;
  return new SourceError(client.withoutToken(named), { isAway, isMissing, retryMs });
}

class HubFetch {
  readonly #order: FetchOrder;
  readonly #model: HubModel;
  readonly #repository: CachedRepository;

  constructor(order: FetchOrder, model: HubModel) {
    this.#order = order;
    this.#model = model;
    this.#repository = new CachedRepository(model.cache, model.name.repository);
  }

  async fetched(): Promise<Fetched | 'unchanged'> {
    const { client, device, graph, name, isOffline } = this.#model;
    const { progress } = this.#order;
    const revision = await this.#commit();
    const etag = `${revision} ${graph || deviceKind(device)}`;
    if (etag === this.#order.etag) return 'unchanged';
    const listed = await this.#listed(revision);
    for (const file of listed.filter(saysWhatItIs(listed))) await this.#content(revision, file);
    if (name.folder !== '') await this.#atTop().#card(revision);
    const { files, others } = await this.#choice(revision, listed).catch((error: unknown) => {
      throw isOffline && error instanceof SourceError ? this.#notHere(`all of it: ${error.message}`) : error;
    });
    requireSize(this.#order, files);
    if (others.length > 0) progress?.leavesOut(others.map((path) => client.withoutToken(path)));
    const contents = new Map<string, string>();
    for (const file of files) contents.set(file.path, await this.#content(revision, file, progress));
    // A cache that cannot be written can still be read.
    if (!isOffline) await this.#repository.note(name.revision, revision).catch(() => {});
    return { ...(await this.#kept(contents)), etag, revision };
  }

  /** Returns the same for the whole repository, in whose own folder its card is. */
  #atTop(): HubFetch {
    const { name } = this.#model;
    return new HubFetch(this.#order, { ...this.#model, name: { ...name, folder: '' } });
  }

  async #card(commit: string): Promise<void> {
    if (this.#model.isOffline) return;
    const listed = await filesAt(this.#listOrder(), commit, false);
    for (const file of listed.filter(isCard)) await this.#content(commit, file);
  }

  async #commit(): Promise<string> {
    const { name, isOffline } = this.#model;
    if (!isOffline) return commitOf(this.#listOrder());
    const commit = await this.#repository.commitOf(name.revision);
    if (commit === undefined) throw this.#notHere();
    return commit;
  }

  /** Returns all files in the model's folder, with names that are not checked yet. */
  async #listed(commit: string): Promise<HubFile[]> {
    if (!this.#model.isOffline) return filesAt(this.#listOrder(), commit);
    const files = await this.#repository.filesAt(commit, this.#model.name.folder);
    if (files.length === 0) throw this.#notHere();
    return files;
  }

  async #choice(commit: string, listed: readonly HubFile[]): Promise<Choice> {
    const { device, graph } = this.#model;
    const folder = this.#folderAt(commit);
    const family = await knownFamily(folder);
    if (family === undefined) {
      throw new SourceError(`it is no model of a family that is known here (${FAMILY_FILES.join(', ')})`);
    }
    const { version } = await namesOf(folder);
    this.#order.offered(version);
    const config = (await objectIn(join(folder, 'config.json'))) ?? {};
    const choice = chooseFiles(listed, { device, graph, config, family });
    const names = new FolderNames();
    for (const { path } of choice.files) names.add(path, 'file');
    return choice;
  }

  /** Returns the folder of the model at a commit, in the hub's cache. */
  #folderAt(commit: string): string {
    const { folder } = this.#model.name;
    return join(this.#repository.snapshot(commit), ...(folder === '' ? [] : folder.split('/')));
  }

  /**
   * Returns the path of a file's content, which is fetched if the cache does not have it.
   *
   * @throws SourceError also when the cache cannot be written.
   */
  async #content(commit: string, file: HubFile, progress?: FetchProgress): Promise<string> {
    try {
      return await this.#contentHere(commit, file, progress);
    } catch (error) {
      throw this.#repository.explained(error);
    }
  }

  async #contentHere(commit: string, file: HubFile, progress: FetchProgress | undefined): Promise<string> {
    const { client, name, isOffline } = this.#model;
    const { limits, signal, source } = this.#order;
    const what = `${source}: ${file.path}`;
    const inRepository = { ...file, path: pathInRepository(name, file.path) };
    const here = await this.#repository.contentOf(commit, inRepository, signal);
    if (here !== undefined) progress?.had(file.bytes);
    if (here === undefined && isOffline) throw this.#notHere(file.path);
    if (here === undefined) await this.#repository.prepare();
    const { blobs } = this.#repository;
    const transfer = { client, name, commit, file, blobs, what, limits, signal, progress };
    const content = here ?? (await transferred(transfer));
    // A cache that was mounted read-only has its links already, or does without.
    return isOffline ? content : this.#repository.link(commit, inRepository, content);
  }

  /** Puts the contents into a model folder, and returns it with its digest. */
  async #kept(contents: ReadonlyMap<string, string>): Promise<Pick<Fetched, 'sha256' | 'folder'>> {
    const { signal, isHere, name } = this.#order;
    const folder = join(await this.#order.workspace(), name);
    await mkdir(folder);
    for (const [path, content] of contents) {
      const file = join(folder, ...path.split('/'));
      await mkdir(dirname(file), { recursive: true });
      await linkOrCopy(content, file);
      signal.throwIfAborted();
    }
    const sha256 = sha256Of(await manifestText(folder, signal));
    requirePinned(this.#order, sha256);
    return (await isHere(sha256)) ? { sha256 } : { sha256, folder };
  }

  #notHere(what = 'it'): SourceError {
    const { cache } = this.#model;
    const problem = `HF_HUB_OFFLINE is set, and ${cache} does not have ${what}`;
    return new SourceError(`${this.#order.source}: ${problem}`, { isAway: true });
  }

  #listOrder() {
    const { client, name } = this.#model;
    const { source, limits, signal } = this.#order;
    return { client, name, source, limits, signal };
  }
}

/** Returns whether a file of those that are listed says what the model is: its family, its licence. */
function saysWhatItIs(listed: readonly HubFile[]): (file: HubFile) => boolean {
  const known = knownBy(listed.map(({ path }) => path));
  const isShort = ({ path, bytes }: HubFile) => bytes <= MAX_FAMILY_FILE_BYTES || !FAMILY_FILES.includes(path);
  return (file) => isCard(file) || (known.includes(file.path) && isShort(file));
}

function isCard({ path, bytes }: HubFile): boolean {
  return path === CARD_FILE && bytes <= MAX_CARD_BYTES;
}

/** Gives a file a second name, or copies it where the two names would be on different disks. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  // The content may itself be a link, which must not be linked to.
  const content = await realpath(from);
  await link(content, to).catch(() => copyFile(content, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL));
}
