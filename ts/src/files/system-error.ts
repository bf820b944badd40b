/** The errors of the operating system. */

/** Returns the `code` of a system error, such as `EACCES`; empty when the error has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** The error codes of a disk that takes no file, perhaps only for a while, in words. */
const DISK_FAULTS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EIO: 'the disk fails',
  EROFS: 'the disk is read-only',
  ENOTDIR: 'a file stands in its place',
  EEXIST: 'a file stands in its place',
};

/** Returns the code of a system error with its words: `ENOSPC: the disk is full`; the code alone for most others. */
export function diskFault(code: string): string {
  const words = DISK_FAULTS[code];
  return words === undefined ? code : `${code}: ${words}`;
}

/** Whether an error says that a disk takes no file. */
export function isDiskFault(error: unknown): boolean {
  const code = errorCode(error);
  return DISK_FAULTS[code] !== undefined || code === 'EACCES' || code === 'EPERM';
}
