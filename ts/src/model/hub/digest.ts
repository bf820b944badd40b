/** The digests of files in the form that a hub names them by. */
import { createHash, type Hash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { addFile } from '../file-digest.ts';
import type { HubFile } from './listing.ts';

type Blob = Pick<HubFile, 'blob' | 'bytes'>;

/** The names of blobs: a hex sha256, or a hex object id of git. */
export const BLOB = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Returns the hash whose hex digest is the blob's name: sha256, or that of git, which begins with the length. */
function blobHash({ blob, bytes }: Blob): Hash {
  return blob.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Whether the file at `path` has the digest of the wanted one. */
export async function hasDigest(path: string, file: Blob, signal: AbortSignal): Promise<boolean> {
  const hash = blobHash(file);
  await addFile(hash, path, signal);
  return hash.digest('hex') === file.blob;
}

/** Whether the content of the file at `path` is the wanted one. */
export async function isWhole(path: string, file: Blob, signal: AbortSignal): Promise<boolean> {
  try {
    return (await stat(path)).size === file.bytes && (await hasDigest(path, file, signal));
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
