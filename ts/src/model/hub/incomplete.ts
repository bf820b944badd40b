/**
 * The incomplete files of transfers from a hub: `<digest>.svc-<machine>-<process>-….incomplete` among the contents, and
 * those of the hub's other clients, `<digest>.….incomplete`. A file that nobody writes any more may be taken over.
 */
import { randomBytes } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isRunning, startMsOf } from '../../files/running-process.ts';
import { sha256Of } from '../../files/sha256.ts';

/** The age, by its last byte, from which an incomplete file of another machine or program counts as given up. */
const GIVEN_UP_MS = 10 * 60_000;
/** The error of the times that a system gives for the start of a process and the last byte of a file. */
const CLOCK_MS = 5000;
const OURS = /\.svc-(\w+)-(\d+)-\w+\.incomplete$/;

/** The incomplete files that this process is writing. */
const writing = new Set<string>();

/** Returns the name for an incomplete file of this process, which counts as being written until `end`. */
export function incompleteFile(blobs: string, blob: string): { readonly path: string; end(): void } {
  const path = join(blobs, `${blob}.svc-${machine()}-${process.pid}-${randomBytes(4).toString('hex')}.incomplete`);
  writing.add(path);
  return { path, end: () => void writing.delete(path) };
}

/** Returns a name of this machine that is the same for all processes on it. */
function machine(): string {
  return sha256Of(hostname()).slice(0, 8);
}

/** Returns the names of a content's incomplete files. */
export async function incompleteNames(blobs: string, blob: string): Promise<string[]> {
  return (await readdir(blobs)).filter((name) => name.startsWith(`${blob}.`) && name.endsWith('.incomplete'));
}

/** Whether an incomplete file belongs to a transfer of this program. */
export function isOurs(name: string): boolean {
  return OURS.test(name);
}

/** Returns the length of an incomplete file that nobody writes any more; undefined for any other. */
export async function givenUpBytes(path: string): Promise<number | undefined> {
  const status = await stat(path).catch(() => undefined);
  if (!status?.isFile()) return undefined;
  const [, host, pid] = OURS.exec(path) ?? [];
  const isOld = Date.now() - status.mtimeMs > GIVEN_UP_MS;
  const isGivenUp = host === machine() ? hasEnded(path, Number(pid), status.mtimeMs) : isOld;
  return isGivenUp ? status.size : undefined;
}

/** Whether the process that has written a file has ended. Its number may be that of another one now. */
function hasEnded(path: string, pid: number, writtenMs: number): boolean {
  // In a container each process has the number of the one before it.
  if (pid === process.pid) return !writing.has(path);
  return !isRunning(pid) || (startMsOf(pid) ?? 0) > writtenMs + CLOCK_MS;
}
