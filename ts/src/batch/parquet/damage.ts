/** What is said of a Parquet file that cannot be read as it is. */

/** A reason that is told as it stands: one line, without the text of an error of JavaScript's own. */
export class Damage extends Error {}

/** The reason in one line. Errors of JavaScript itself tell of the reader's variables, not of the file. */
export function damageReason(error: unknown): string {
  const isTold = error instanceof Error && (error instanceof Damage || error.constructor === Error);
  return isTold ? error.message.replace(/^parquet /, '').replace(/\s+/g, ' ') : 'its bytes make no sense';
}

/** Whether the file could not be read at all, whatever is in it. */
export function isReadError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}
