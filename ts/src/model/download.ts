/** Downloads bytes from elsewhere into a file or into memory, within limits. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { FileDigest } from './file-digest.ts';
import { reason, SourceError } from './source-error.ts';
import type { Opened } from './store.ts';

/** The limits for the download of one model. */
export interface FetchLimits {
  /** The most bytes of all its files, and of the archive that they come in. */
  readonly maxBytes: number;
  /** The time for all of it. */
  readonly totalMs: number;
  /** In each span of this length `minBytesPerSpan` bytes must arrive, otherwise the transfer counts as stopped. */
  readonly spanMs: number;
  readonly minBytesPerSpan: number;
}

/** The limits for a model from elsewhere that no setting changes. */
export const TRANSFER_LIMITS = { spanMs: 30_000, minBytesPerSpan: 16 * 2 ** 10 };

export interface DownloadOptions {
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
  /** The name of the object in messages. */
  readonly what: string;
  /** The length that the object must have in bytes, where that is known. */
  readonly bytes?: number | undefined;
  readonly progress?: FetchProgress | undefined;
}

/** The person who waits for a model, and is told how far it is. */
export interface FetchProgress {
  /** Takes note of the bytes that the wanted files have together. */
  expects(bytes: number): void;
  /**
   * Takes note of bytes that are there without having come now: those of an earlier fetch. A negative number means that
   * bytes have to come once more.
   */
  had(bytes: number): void;
  /** Takes note of bytes that have come now. */
  got(bytes: number): void;
  /** Takes note of graphs that the source also has, and that are not fetched. */
  leavesOut(graphs: readonly string[]): void;
}

/**
 * Writes an object to a new file and returns its length and digest.
 *
 * @throws SourceError when the object is incomplete, too large or too slow.
 */
export async function download(opened: Opened, path: string, options: DownloadOptions): Promise<FileDigest> {
  const hash = createHash('sha256');
  let bytes = 0;
  const hashed = async function* () {
    for await (const chunk of received(opened, options)) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  };
  await pipeline(hashed, createWriteStream(path, { flags: 'wx' }));
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * Returns the text of an object of at most `maxBytes`.
 *
 * @throws SourceError as `download` does.
 */
export async function downloadText(opened: Opened, options: DownloadOptions, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of received(opened, options, { bytes: maxBytes })) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** The most bytes of an object, and the setting that limits them, where there is one. */
interface Limit {
  readonly bytes: number;
  readonly setting?: string;
}

/**
 * Yields the chunks of an object as they arrive. The length that the sender states can refuse an object early, but only
 * the counted bytes can accept it.
 *
 * @throws SourceError as `download` does.
 */
export async function* received(
  opened: Opened,
  options: DownloadOptions,
  limit: Limit = { bytes: options.limits.maxBytes, setting: 'model_max_bytes' },
): AsyncGenerator<Buffer, void> {
  const { what, bytes, signal } = options;
  const { body } = opened;
  const watch = watchProgress(opened, options);
  try {
    if (bytes !== undefined && opened.bytes !== undefined && opened.bytes !== bytes)
      throw wrongLength(opened.bytes, options);
    if ((opened.bytes ?? 0) > limit.bytes) throw overLimit(what, limit);
    for await (const chunk of body as AsyncIterable<Buffer>) {
      watch.count(chunk.length);
      options.progress?.got(chunk.length);
      if (watch.total() > (bytes ?? limit.bytes))
        throw bytes === undefined ? overLimit(what, limit) : wrongLength(watch.total(), options);
      yield chunk;
    }
    if (bytes !== undefined && watch.total() !== bytes) throw wrongLength(watch.total(), options);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof SourceError ? error : broken(error, options);
  } finally {
    watch.end();
    body.destroy();
  }
}

interface Watch {
  count(bytes: number): void;
  total(): number;
  end(): void;
}

function watchProgress({ body }: Opened, { limits, signal, what }: DownloadOptions): Watch {
  let total = 0;
  let before = 0;
  const { minBytesPerSpan, spanMs } = limits;
  const tooSlow = `${what}: fewer than ${minBytesPerSpan} bytes in ${spanMs / 1000} s`;
  const span = setInterval(() => {
    if (total - before < minBytesPerSpan) body.destroy(new SourceError(tooSlow, { isAway: true }));
    before = total;
  }, spanMs);
  const abort = () => body.destroy(new Error('aborted'));
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return {
    count(bytes) {
      total += bytes;
    },
    total: () => total,
    end() {
      clearInterval(span);
      signal.removeEventListener('abort', abort);
    },
  };
}

function overLimit(what: string, { bytes, setting }: Limit): SourceError {
  return new SourceError(`${what}: more than ${bytes} bytes${setting === undefined ? '' : ` (${setting})`}`);
}

function wrongLength(actual: number, { what, bytes }: DownloadOptions): SourceError {
  return new SourceError(`${what}: ${actual > (bytes ?? 0) ? 'more' : 'fewer'} than ${bytes} bytes`);
}

function broken(error: unknown, { what }: DownloadOptions): SourceError {
  return new SourceError(`${what}: the transfer broke off (${reason(error)})`, { isAway: true, cause: error });
}
