/** Files that are made once and never overwritten: the generated `svc.json` and credential files. */
import { randomBytes } from 'node:crypto';
import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface NewFile {
  readonly path: string;
  readonly text: string;
  /** Permission bits, such as `0o600`; the platform may know none. */
  readonly mode: number;
}

/** Codes of a file system without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EXDEV']);

/** The `code` of a system error, such as `EACCES`; empty when the error has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/**
 * True when the file is now made, false when it was already there.
 *
 * Nobody ever sees it half written: the text goes to a temporary file in the same folder, which is then linked to its
 * name, and a link fails where the name is taken.
 *
 * @throws The system error when the folder cannot be written.
 */
export function createExclusively(file: NewFile): boolean {
  const temporary = temporaryPath(dirname(file.path));
  writeFileSync(temporary, file.text, { mode: file.mode, flag: 'wx' });
  try {
    return claim(() => linkSync(temporary, file.path));
  } catch (error) {
    if (!NO_LINKS.has(errorCode(error))) throw error;
    return claim(() => writeFileSync(file.path, file.text, { mode: file.mode, flag: 'wx' }));
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** True when files can be made in `folder`: one is made and removed again, since modes do not tell it everywhere. */
export function canMakeFiles(folder: string): boolean {
  const path = temporaryPath(folder);
  try {
    writeFileSync(path, '', { flag: 'wx' });
    rmSync(path);
    return true;
  } catch {
    return false;
  }
}

/** A name in `folder` that no file has. */
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
