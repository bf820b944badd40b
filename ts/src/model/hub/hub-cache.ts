/**
 * The hub's cache on this disk, in the layout that its other clients read and write:
 *
 *     models--org--name/blobs/<digest>             the content of a file
 *     models--org--name/snapshots/<commit>/<path>  a link to the content
 *     models--org--name/refs/<revision>            the commit of a branch or tag
 *
 * Other programs may add and remove files at any time, so nothing in it is trusted before it has been read.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, rename, rm, rmdir, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { diskFault, errorCode, isDiskFault } from '../../files/system-error.ts';
import { unmadeCode } from '../../files/unmade-folder.ts';
import { filesIn } from '../file-digest.ts';
import { SourceError } from '../source-error.ts';
import { BLOB, isWhole } from './digest.ts';
import { givenUpBytes, isOurs } from './incomplete.ts';
import type { HubFile } from './listing.ts';
import { isCommit } from './name.ts';

/** The content of the file that tells backup programs to leave a folder out (https://bford.info/cachedir/). */
const CACHE_TAG = 'Signature: 8a477f597d28d172789f06886806bc55\n';
/** The longest ref, in bytes: a commit, with room for the end of its line. */
const MAX_REF_BYTES = 64;
/** The age from which a content without a name counts as left behind. */
const NAMED_AFTER_MS = 10 * 60_000;
/** The error codes of links where a system, a disk or a user can have none. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL']);

/** A repository in the cache. */
export class CachedRepository {
  readonly #cache: string;
  readonly folder: string;

  /** @param cache - The cache of the hub, such as `~/.cache/huggingface/hub`. */
  constructor(cache: string, repository: string) {
    this.#cache = cache;
    this.folder = join(cache, `models--${repository.replace('/', '--')}`);
  }

  /** The folder of the contents. */
  get blobs(): string {
    return join(this.folder, 'blobs');
  }

  /** Returns the folder of a commit, where each file has its own name. */
  snapshot(commit: string): string {
    return join(this.folder, 'snapshots', commit);
  }

  /** Returns the commit that a revision stood for when a client last asked; undefined where none has. */
  async commitOf(revision: string): Promise<string | undefined> {
    if (isCommit(revision)) return revision;
    const path = join(this.folder, 'refs', ...revision.split('/'));
    const isRef = ((await lengthOf(path)) ?? Number.POSITIVE_INFINITY) <= MAX_REF_BYTES;
    const commit = isRef ? (await readFile(path, 'utf8').catch(() => '')).trim() : '';
    return isCommit(commit) ? commit : undefined;
  }

  /**
   * Returns the files of a commit that are here; files without a digest are left out.
   *
   * @param inside - The folder in the repository from which on paths count; files elsewhere are left out.
   */
  async filesAt(commit: string, inside = ''): Promise<HubFile[]> {
    const folder = join(this.snapshot(commit), ...inside.split('/'));
    const found = await filesIn(folder).catch(() => []);
    const files = found.map(async ({ path }) => {
      const file = join(folder, ...path.split('/'));
      const blob = basename(await readlink(file).catch(() => ''));
      const bytes = await lengthOf(file);
      return BLOB.test(blob) && bytes !== undefined ? [{ path, bytes, blob }] : [];
    });
    return (await Promise.all(files)).flat();
  }

  /** Returns the path of a file's content in the cache, checked; undefined where it is missing or damaged. */
  async contentOf(commit: string, file: HubFile, signal: AbortSignal): Promise<string | undefined> {
    // Where there are no links, the content lies in the snapshot itself.
    for (const path of [join(this.blobs, file.blob), join(this.snapshot(commit), ...file.path.split('/'))]) {
      if (await isWhole(path, file, signal)) return path;
    }
    return undefined;
  }

  /**
   * Makes the folder of the contents.
   *
   * @throws SourceError when the cache cannot be written.
   */
  async prepare(): Promise<void> {
    try {
      await mkdir(this.blobs, { recursive: true });
      await writeFile(join(this.#cache, 'CACHEDIR.TAG'), CACHE_TAG, { flag: 'wx' }).catch(() => {});
    } catch (error) {
      throw this.#unkept(await unmadeCode(this.blobs, error), error);
    }
  }

  /** Returns the error of work in the cache, in the cache's words where its disk takes no file. */
  explained(error: unknown): unknown {
    const isKnown = error instanceof SourceError || !isDiskFault(error);
    return isKnown ? error : this.#unkept(errorCode(error), error);
  }

  #unkept(code: string, cause: unknown): SourceError {
    const problem = `files of a hub cannot be kept in ${this.#cache} (${diskFault(code)}); set HF_HOME`;
    return new SourceError(problem, { cause });
  }

  /** Gives a content its name in a commit, and returns the path at which it lies from then on. */
  async link(commit: string, file: HubFile, content: string): Promise<string> {
    const pointer = join(this.snapshot(commit), ...file.path.split('/'));
    if (pointer === content || (await pointsTo(pointer, file.blob))) return content;
    await mkdir(dirname(pointer), { recursive: true });
    const temporary = `${pointer}.${randomBytes(4).toString('hex')}.tmp`;
    try {
      await symlink(relative(dirname(pointer), content), temporary);
      await rename(temporary, pointer);
      return content;
    } catch (error) {
      if (!NO_LINKS.has(errorCode(error))) throw error;
      // Not every user of Windows may make links. The other clients, too, move the file then.
      await rename(content, pointer);
      return pointer;
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Notes the commit that a revision stands for. */
  async note(revision: string, commit: string): Promise<void> {
    if (revision === commit || (await this.commitOf(revision)) === commit) return;
    const path = join(this.folder, 'refs', ...revision.split('/'));
    await mkdir(dirname(path), { recursive: true });
    const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`;
    await writeFile(temporary, commit);
    await rename(temporary, path);
  }

  /**
   * Removes files of a commit, and what nothing refers to after that: contents, empty folders, the revisions of a
   * commit without files. Other files of the repository stay, since other programs have fetched them.
   */
  async remove(commit: string, paths: readonly string[]): Promise<void> {
    const snapshot = this.snapshot(commit);
    const removed = new Set(paths);
    const gone = (await this.filesAt(commit)).filter(({ path }) => removed.has(path)).map(({ blob }) => blob);
    for (const path of paths) await rm(join(snapshot, ...path.split('/')), { force: true });
    await removeEmpty(snapshot);
    if ((await filesIn(snapshot).catch(() => [])).length === 0) await this.#forget(commit);
    await this.#sweep(new Set(gone));
    await removeEmpty(this.folder);
  }

  async #forget(commit: string): Promise<void> {
    const refs = join(this.folder, 'refs');
    for (const { path } of await filesIn(refs).catch(() => [])) {
      if ((await this.commitOf(path)) === commit) await rm(join(refs, ...path.split('/')), { force: true });
    }
  }

  /**
   * Removes contents that no commit has, and transfers of this program that have been given up.
   *
   * @param gone - The contents whose names were removed. Any other may have come in a moment ago, by another program
   * that has not named it yet.
   */
  async #sweep(gone: ReadonlySet<string>): Promise<void> {
    const commits = await readdir(join(this.folder, 'snapshots')).catch(() => []);
    const files = (await Promise.all(commits.map((commit) => this.filesAt(commit)))).flat();
    const needed = new Set(files.map(({ blob }) => blob));
    for (const name of await readdir(this.blobs).catch(() => [])) {
      const path = join(this.blobs, name);
      const isLeft = isOurs(name)
        ? (await givenUpBytes(path)) !== undefined
        : BLOB.test(name) && !needed.has(name) && (gone.has(name) || (await isOld(path)));
      if (isLeft) await rm(path, { force: true });
    }
  }
}

/** Whether the last byte of a file is older than the moment between the arrival of a content and its name. */
async function isOld(path: string): Promise<boolean> {
  const status = await stat(path).catch(() => undefined);
  return status !== undefined && Date.now() - status.mtimeMs > NAMED_AFTER_MS;
}

/** Returns the bytes of a file; undefined where there is none. */
async function lengthOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(() => undefined))?.size;
}

async function pointsTo(pointer: string, blob: string): Promise<boolean> {
  return basename(await readlink(pointer).catch(() => '')) === blob;
}

/** Removes a folder and the folders in it, as far as they hold no files. */
async function removeEmpty(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeEmpty(join(folder, entry.name));
  // A folder with files in it is not removed.
  await rmdir(folder).catch(() => {});
}
