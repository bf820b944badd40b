/** The reason why a folder cannot be made. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCode } from './system-error.ts';

/**
 * Returns the code of the error that kept a folder and those above it from being made. For a read-only disk Node itself
 * gives `ENOENT`, so the folders above are tried one by one.
 */
export async function unmadeCode(folder: string, error: unknown): Promise<string> {
  const above = dirname(folder);
  if (errorCode(error) !== 'ENOENT' || above === folder) return errorCode(error);
  const cause: unknown = await mkdir(above).catch((reason: unknown) => reason);
  return cause === undefined || errorCode(cause) === 'EEXIST' ? errorCode(error) : unmadeCode(above, cause);
}
