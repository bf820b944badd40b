/** The files of a folder, with their lengths and digests. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

export interface FileDigest {
  readonly bytes: number;
  /** The digest in lower-case hex. */
  readonly sha256: string;
}

/** Returns the length and the digest of a file. The reading ends when `signal` fires, since files may be long. */
export async function digestOf(path: string, signal?: AbortSignal): Promise<FileDigest> {
  const hash = createHash('sha256');
  const bytes = await addFile(hash, path, signal);
  return { bytes, sha256: hash.digest('hex') };
}

/** Adds the content of a file to a hash, and returns its length. The reading ends when `signal` fires. */
export async function addFile(hash: Hash, path: string, signal?: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 }) as AsyncIterable<Buffer>) {
    signal?.throwIfAborted();
    hash.update(chunk);
    bytes += chunk.length;
  }
  return bytes;
}

/**
 * Returns the paths of all entries under `folder` that are not folders themselves, with `/` between their parts, in the
 * order of their bytes. Links are not followed.
 */
export async function filesIn(folder: string): Promise<{ path: string; isFile: boolean }[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = entries.map(async (entry) => {
    if (!entry.isDirectory()) return [{ path: entry.name, isFile: entry.isFile() }];
    const inner = await filesIn(join(folder, entry.name));
    return inner.map(({ path, isFile }) => ({ path: `${entry.name}/${path}`, isFile }));
  });
  const files = (await Promise.all(found)).flat();
  return files.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

/** Returns the digests of all files of `folder` by path; entries that are neither files nor folders are left out. */
export async function digestsOf(folder: string, signal?: AbortSignal): Promise<Record<string, FileDigest>> {
  const digests: [string, FileDigest][] = [];
  for (const { path, isFile } of await filesIn(folder)) {
    if (isFile) digests.push([path, await digestOf(join(folder, ...path.split('/')), signal)]);
  }
  return Object.fromEntries(digests);
}
