/**
 * Unpacks archives of models. An archive is refused as a whole when it holds an entry that no model needs, such as a
 * link or a device; only the attribute files of macOS are skipped.
 */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as zlib from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { canBeKnown, NO_FAMILY_FILE } from './family.ts';
import { FolderNames } from './folder-names.ts';
import type { ArchiveFormat } from './location.ts';
import { reason, SourceError } from './source-error.ts';

interface UnpackOptions {
  readonly format: ArchiveFormat;
  /** The most bytes of all files together. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * How many times its own size an archive may unpack to. Graphs and tokenizers shrink to a tenth at most; a file that
 * shrinks to a thousandth was made to fill a disk.
 */
const MAX_RATIO = 200;
/** Archives that unpack to no more bytes than this do no harm, so the ratio is not checked for them. */
const HARMLESS_BYTES = 16 * 2 ** 20;

/**
 * Unpacks an archive into an empty folder.
 *
 * @throws SourceError when the archive is broken or too large, or holds anything but files and folders with safe names.
 */
export async function unpack(archive: string, folder: string, options: UnpackOptions): Promise<void> {
  const { signal, maxBytes } = options;
  signal.throwIfAborted();
  const { size } = await stat(archive);
  const stop = new AbortController();
  const abort = () => stop.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const target = new UnpackTarget({ folder, archiveBytes: size, maxBytes, signal: stop.signal });
  try {
    await (options.format === 'tar' ? unpackTar(archive, target, stop) : unpackZip(archive, target));
  } catch (error) {
    signal.throwIfAborted();
    const problem = `it cannot be unpacked: ${reason(error)}`;
    throw error instanceof SourceError ? error : new SourceError(problem, { cause: error });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Returns the model folder in an unpacked archive: the folder itself, or the only one in it.
 *
 * @throws SourceError when neither of them has a file that a model is known by.
 */
export async function modelFolderIn(folder: string): Promise<string> {
  const names = await readdir(folder);
  if (canBeKnown(names)) return folder;
  const [only] = names;
  const inner = only === undefined || names.length > 1 ? [] : await readdir(join(folder, only)).catch(() => []);
  if (only === undefined || !canBeKnown(inner)) throw new SourceError(`it has ${NO_FAMILY_FILE}`);
  return join(folder, only);
}

interface Item {
  readonly name: string;
  readonly kind: 'file' | 'folder';
  /** The bytes of the file, each counted when it comes out of the archive. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

interface TargetOptions {
  readonly folder: string;
  readonly archiveBytes: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** The folder that is filled, with the count of the bytes that it may still take. */
class UnpackTarget {
  readonly #options: TargetOptions;
  readonly #names = new FolderNames();
  #bytes = 0;

  constructor(options: TargetOptions) {
    this.#options = options;
  }

  /** Writes a file or folder. The attribute files of macOS are read and counted like all others, but not written. */
  async add({ name, kind, chunks }: Item): Promise<void> {
    const { folder, signal } = this.#options;
    signal.throwIfAborted();
    const path = join(folder, ...this.#names.add(name, kind).split('/'));
    if (isAttributes(name)) return discard(chunks);
    await mkdir(kind === 'folder' ? path : dirname(path), { recursive: true });
    if (kind === 'file') await pipeline(chunks, createWriteStream(path, { flags: 'wx' }), { signal });
  }

  /**
   * Counts bytes that come out of the archive, since the sizes that an archive states may be false.
   *
   * @throws SourceError when there are more than the limits allow.
   */
  count(bytes: number): void {
    const { maxBytes, archiveBytes, signal } = this.#options;
    signal.throwIfAborted();
    this.#bytes += bytes;
    if (this.#bytes > maxBytes) throw new SourceError(`unpacked more than ${maxBytes} bytes (model_max_bytes)`);
    if (this.#bytes > Math.max(HARMLESS_BYTES, MAX_RATIO * archiveBytes)) {
      throw new SourceError(`unpacked more than ${MAX_RATIO} times its size`);
    }
  }
}

async function discard(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of chunks);
}

/** Whether a name is that of an attribute file, which macOS puts next to a file and which no model needs. */
function isAttributes(name: string): boolean {
  return basename(name).startsWith('._') || name.split('/').includes('__MACOSX');
}

async function unpackTar(archive: string, target: UnpackTarget, stop: AbortController): Promise<void> {
  let added = Promise.resolve();
  let current: ReadEntry | undefined;
  const parser = new Parser({
    strict: true,
    brotli: false,
    zstd: false,
    onReadEntry(entry) {
      added = added.then(() => {
        current = entry;
        return addTarEntry(entry, target);
      });
      added.catch((error: unknown) => stop.abort(error));
    },
  });
  parser.on('ignoredEntry', (entry: ReadEntry) => stop.abort(notAFile(entry.path, entry.type)));
  parser.on('error', (error) => stop.abort(error));
  const { signal } = stop;
  const parse = async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of onceUnpacked(chunks)) {
      // Bytes outside of files also count: an archive may have headers without end.
      target.count(chunk.length);
      if (!parser.write(chunk)) await once(parser, 'drain', { signal });
    }
    const end = once(parser, 'end', { signal });
    parser.end();
    await end;
  };
  // The error becomes the reason of the abort here, as the pipeline would report only that it was aborted.
  const noted = (error: unknown) => {
    stop.abort(error);
    throw error;
  };
  try {
    await pipeline(createReadStream(archive), zlib.createGunzip(), (chunks) => parse(chunks).catch(noted), { signal });
  } catch (error) {
    stop.abort(error);
  }
  // An entry that was cut off in the middle would wait for its end forever.
  if (signal.aborted) current?.destroy(signal.reason);
  await added.catch(() => {});
  signal.throwIfAborted();
}

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** Refuses an archive that is packed twice: the parser would unpack it once more, without its bytes being counted. */
async function* onceUnpacked(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let start = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (start.length < GZIP_MAGIC.length) start = Buffer.concat([start, chunk]).subarray(0, GZIP_MAGIC.length);
    if (start.equals(GZIP_MAGIC)) throw new SourceError('it is packed twice');
    yield chunk;
  }
}

async function addTarEntry(entry: ReadEntry, target: UnpackTarget): Promise<void> {
  const { path: name, type } = entry;
  const isFile = type === 'File' || type === 'OldFile' || type === 'ContiguousFile';
  if (!isFile && type !== 'Directory') throw notAFile(name, type);
  await target.add({ name, kind: isFile ? 'file' : 'folder', chunks: entry });
  // The parser gives the next entry only after this one has been read, even when it is empty.
  entry.resume();
}

function notAFile(name: string, type: string): SourceError {
  return new SourceError(`${JSON.stringify(name)} is of the type ${type}: only files and folders may be in an archive`);
}

/** The bits of the file type in the attributes that Unix systems write. */
const FILE_TYPE = 0o170000;
const ALLOWED_TYPES: ReadonlySet<number> = new Set([0, 0o100000, 0o040000]);

async function unpackZip(archive: string, target: UnpackTarget): Promise<void> {
  const zip = await openPromise(archive, { autoClose: false, strictFileNames: true });
  try {
    for await (const entry of zip.eachEntry()) {
      const name = entry.fileName;
      if (!ALLOWED_TYPES.has((entry.externalFileAttributes >>> 16) & FILE_TYPE)) {
        throw notAFile(name, 'link or device');
      }
      if (name.endsWith('/')) await target.add({ name, kind: 'folder', chunks: Readable.from([]) });
      else await target.add({ name, kind: 'file', chunks: checked(zip, entry, target) });
    }
  } finally {
    zip.close();
  }
}

/**
 * Yields the chunks of a zip entry and checks its checksum, which the reader of zip files does not. Older releases of
 * Node 20 have no `crc32`, so nothing is checked there.
 *
 * @throws SourceError when the entry is damaged or too large.
 */
async function* checked(zip: ZipFile, entry: Entry, target: UnpackTarget): AsyncGenerator<Buffer, void> {
  let sum = 0;
  for await (const chunk of (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>) {
    target.count(chunk.length);
    sum = zlib.crc32?.(chunk, sum) ?? entry.crc32;
    yield chunk;
  }
  if (sum !== entry.crc32) throw new SourceError(`${JSON.stringify(entry.fileName)} is damaged`);
}
