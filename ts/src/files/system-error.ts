/** The errors of the operating system. */

/** Returns the `code` of a system error, such as `EACCES`; empty when the error has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
