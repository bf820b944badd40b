/** The digests of files in the form that a hub names them by. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { HubFile } from './listing.ts';

/** Returns the hash whose hex digest is the blob's name: sha256, or that of git, which begins with the length. */
export function blobHash({ blob, bytes }: Pick<HubFile, 'blob' | 'bytes'>): Hash {
  return blob.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Adds the content of a file to a hash. The reading ends when `signal` fires, since files may be long. */
export async function addFile(hash: Hash, path: string, signal: AbortSignal): Promise<void> {
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 }) as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
}

/** Whether the content of the file at `path` is the wanted one. */
export async function isWhole(
  path: string,
  file: Pick<HubFile, 'blob' | 'bytes'>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    if ((await stat(path)).size !== file.bytes) return false;
    const hash = blobHash(file);
    await addFile(hash, path, signal);
    return hash.digest('hex') === file.blob;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
