/**
 * The transfer of one file from a hub into its cache. A transfer that was broken off, even by the end of its process,
 * goes on where it was: its bytes are in an incomplete file among the contents, and a later transfer takes that over by
 * renaming it.
 */
import { createWriteStream } from 'node:fs';
import { rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type FetchLimits, type FetchProgress, received } from '../download.ts';
import { SourceError } from '../source-error.ts';
import type { HubAnswer, HubClient } from './client.ts';
import { hasDigest } from './digest.ts';
import { givenUpBytes, incompleteFile, incompleteNames } from './incomplete.ts';
import type { HubFile } from './listing.ts';
import { type HubName, pathInRepository } from './name.ts';

/** The transfer of a file. */
export interface Transfer {
  readonly client: HubClient;
  readonly name: HubName;
  readonly commit: string;
  readonly file: HubFile;
  /** The folder of the contents. */
  readonly blobs: string;
  /** The name of the file in messages. */
  readonly what: string;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
  readonly progress?: FetchProgress | undefined;
  /** The wait before a transfer that broke off goes on, in milliseconds. */
  readonly retryMs?: number;
}

const RETRY_MS = 1000;
/** The times that a transfer may break off without a byte before it fails. */
const MAX_FRUITLESS = 3;

/**
 * Returns the path of a file's content, once it is complete and has its digest.
 *
 * @throws SourceError when the hub does not send it, or sends something else.
 */
export async function transferred(transfer: Transfer): Promise<string> {
  const { file, blobs } = transfer;
  const { path, end } = incompleteFile(blobs, file.blob);
  try {
    const rest = await takeOver(transfer, path);
    await untilComplete(transfer, path);
    const content = join(blobs, file.blob);
    await rename(path, content);
    for (const other of rest) await rm(other, { force: true });
    return content;
  } finally {
    end();
  }
}

/**
 * Gives the longest incomplete file that has been given up the name `path`, or makes an empty file where there is none.
 * Returns the others that have been given up.
 */
async function takeOver({ file, blobs }: Transfer, path: string): Promise<string[]> {
  const paths = (await incompleteNames(blobs, file.blob)).map((name) => join(blobs, name));
  const found = await Promise.all(
    paths.map(async (other) => ({ path: other, bytes: (await givenUpBytes(other)) ?? Number.POSITIVE_INFINITY })),
  );
  // A file that is longer than the wanted one cannot be the beginning of it.
  const usable = found.filter(({ bytes }) => bytes <= file.bytes);
  const [longest, ...rest] = usable.sort((a, b) => b.bytes - a.bytes);
  // Another process may be faster, and then the file is gone.
  const isTaken =
    longest !== undefined &&
    (await rename(longest.path, path).then(
      () => true,
      () => false,
    ));
  if (!isTaken) await writeFile(path, '');
  return rest.map((other) => other.path);
}

async function untilComplete(transfer: Transfer, path: string): Promise<void> {
  const { file, progress, signal, what } = transfer;
  const { size: before } = await stat(path);
  progress?.had(before);
  await appendAll(transfer, path);
  if (await hasDigest(path, file, signal)) return;
  await truncate(path);
  // The first bytes may be those of a disk that was full, or of a process that was killed in the middle of a write.
  if (before > 0) {
    progress?.had(-file.bytes);
    await appendAll(transfer, path);
    if (await hasDigest(path, file, signal)) return;
  }
  await rm(path, { force: true });
  throw new SourceError(`${what}: has another ${file.blob.length === 64 ? 'sha256' : 'digest'} than the hub says`);
}

/** Appends to a file what it lacks. A transfer that breaks off goes on at once, as long as it brings bytes. */
async function appendAll(transfer: Transfer, path: string): Promise<void> {
  const { file, signal, progress, retryMs = RETRY_MS } = transfer;
  for (let fruitless = 0; ; ) {
    const { size: before } = await stat(path);
    if (before === file.bytes) return;
    const counted = new Count(progress);
    try {
      await append({ ...transfer, progress: counted }, path, before);
    } catch (error) {
      signal.throwIfAborted();
      const { size } = await stat(path);
      // Bytes that had arrived and were not written yet have to come again.
      progress?.had(size - before - counted.bytes);
      fruitless = size > before ? 0 : fruitless + 1;
      if (!isBreak(error) || fruitless === MAX_FRUITLESS) throw error;
      await delay(retryMs, undefined, { signal }).catch(() => {});
      signal.throwIfAborted();
    }
  }
}

/** The bytes that one part of a transfer has brought. */
class Count implements FetchProgress {
  readonly #progress: FetchProgress | undefined;
  bytes = 0;

  constructor(progress: FetchProgress | undefined) {
    this.#progress = progress;
  }

  expects(): void {}

  leavesOut(): void {}

  had(bytes: number): void {
    this.bytes += bytes;
    this.#progress?.had(bytes);
  }

  got(bytes: number): void {
    this.bytes += bytes;
    this.#progress?.got(bytes);
  }
}

/** Whether an error is that of a connection, which the next one may not have. */
function isBreak(error: unknown): boolean {
  return error instanceof SourceError && error.isAway && error.cause !== undefined;
}

async function append(transfer: Transfer, path: string, from: number): Promise<void> {
  const { client, name, commit, file, what, limits, signal, progress } = transfer;
  const { repository } = name;
  const parts = pathInRepository(name, file.path).split('/').map(encodeURIComponent);
  const url = `${repository}/resolve/${commit}/${parts.join('/')}`;
  const answer = await client.get(url, { what, repository, signal, from });
  try {
    requireSame(transfer, answer);
    requireRange(transfer, answer, from);
    if (from > 0 && answer.status === 200) {
      // A server that does not know ranges sends all of it.
      progress?.had(-from);
      await truncate(path);
    }
  } catch (error) {
    answer.body.destroy();
    throw error;
  }
  const bytes = answer.status === 206 ? file.bytes - from : file.bytes;
  try {
    const chunks = received({ body: answer.body }, { limits, signal, what, bytes, progress });
    await pipeline(chunks, createWriteStream(path, { flags: 'a' }));
  } catch (error) {
    if (!(error instanceof SourceError) || !error.isAway) throw error;
    // A transfer that is too slow has no cause of its own.
    throw new SourceError(error.message, { isAway: true, cause: error });
  }
}

/**
 * Requires that the hub sends the listed file: it names commit, digest and length of large files before it redirects.
 *
 * @throws SourceError when it sends another.
 */
function requireSame({ commit, file, what }: Transfer, { told }: HubAnswer): void {
  const { 'x-repo-commit': sent, 'x-linked-etag': etag, 'x-linked-size': size } = told;
  const isOther =
    (sent !== undefined && sent !== commit) ||
    (etag !== undefined && String(etag).replace(/^W\//, '').replaceAll('"', '') !== file.blob) ||
    (size !== undefined && Number(size) !== file.bytes);
  if (isOther) throw new SourceError(`${what}: the hub sends another file than it lists`);
}

/**
 * Requires that an answer begins with the wanted byte.
 *
 * @throws SourceError when it begins with another.
 */
function requireRange({ file, what }: Transfer, { status, body }: HubAnswer, from: number): void {
  if (status !== 206) return;
  const [, first, all] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(body.headers['content-range'] ?? '') ?? [];
  const isRight = Number(first) === from && (all === '*' || Number(all) === file.bytes);
  if (!isRight) throw new SourceError(`${what}: the hub sends other bytes than it was asked for`);
}
