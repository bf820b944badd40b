/** The errors of a Parquet file that cannot be read. */

/** An error whose message is shown to the user as it is: one line, without the text of a JavaScript error. */
export class Damage extends Error {}

/**
 * Returns the reason in one line. JavaScript's own errors describe variables of the reader and not the file, so they
 * get a general text.
 */
export function damageReason(error: unknown): string {
  const isTold = error instanceof Error && (error instanceof Damage || error.constructor === Error);
  return isTold ? error.message.replace(/^parquet /, '').replace(/\s+/g, ' ') : 'its bytes make no sense';
}

/** Whether the file itself could not be read, regardless of its contents. */
export function isReadError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}
