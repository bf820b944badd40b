/** Files that are made once and never overwritten: the generated `svc.json` and credential files. */
import { randomBytes } from 'node:crypto';
import { closeSync, linkSync, lstatSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from './system-error.ts';

interface NewFile {
  readonly path: string;
  readonly text: string;
  /** Permission bits, such as `0o600`; a platform without permission bits ignores them. */
  readonly mode: number;
}

/** The error codes of a file system without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EXDEV']);

/**
 * Makes a file. Returns true when the file is now made, false when it was already there.
 *
 * No reader ever sees the file half written: the text goes to a temporary file in the same folder, which is then linked
 * to its name, and a link fails where the name is taken.
 *
 * @throws The system error when the folder cannot be written.
 */
export function createExclusively(file: NewFile): boolean {
  const temporary = temporaryPath(dirname(file.path));
  try {
    // On a full disk the temporary file is made and stays empty.
    writeFileSync(temporary, file.text, { mode: file.mode, flag: 'wx' });
    return claim(() => linkSync(temporary, file.path));
  } catch (error) {
    if (!NO_LINKS.has(errorCode(error))) throw error;
    return claim(() => writeWhole(file));
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Writes a new file; when not all of it can be written, no part of it is left. */
function writeWhole({ path, text, mode }: NewFile): void {
  const descriptor = openSync(path, 'wx', mode);
  try {
    writeFileSync(descriptor, text);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Returns why no file can be made in `folder`, as a system error's code such as `EROFS`; undefined when one can be
 * made. A file is made and removed again, since permission bits do not tell this everywhere.
 */
export function makeProblem(folder: string): string | undefined {
  const path = temporaryPath(folder);
  try {
    // The file is not empty, since an empty one fits even on a full disk.
    writeFileSync(path, '\n', { flag: 'wx' });
    return undefined;
  } catch (error) {
    return errorCode(error) || String(error);
  } finally {
    rmSync(path, { force: true });
  }
}

/** Whether files can be made in `folder`. */
export function canMakeFiles(folder: string): boolean {
  return makeProblem(folder) === undefined;
}

/** The names that `temporaryPath` makes. */
const TEMPORARY = /^\.svc-[0-9a-f]{12}\.tmp$/;

/**
 * The age from which a temporary file counts as abandoned. Each lives only for a moment, but the clocks of machines
 * that share a disk may differ by more.
 */
const ABANDONED_MS = 10 * 60_000;

/** Removes the temporary files in `folder` that a killed process left behind. */
export function removeAbandoned(folder: string): void {
  try {
    for (const name of readdirSync(folder).filter((name) => TEMPORARY.test(name))) {
      const path = join(folder, name);
      const stats = lstatSync(path);
      if (stats.isFile() && Date.now() - stats.mtimeMs > ABANDONED_MS) rmSync(path, { force: true });
    }
  } catch {
    // A process that may not read or write in the folder has left no file there.
  }
}

/** Returns a path in `folder` that no file has. */
export function temporaryPath(folder: string): string {
  return join(folder, `.svc-${randomBytes(6).toString('hex')}.tmp`);
}

function claim(take: () => void): boolean {
  try {
    take();
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}
