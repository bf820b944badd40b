/** Why a source gave no model. */

interface SourceErrorOptions {
  readonly isAway?: boolean;
  readonly isMissing?: boolean;
  readonly cause?: unknown;
}

/** One line for the log: what, where, and what is wrong with it. No secret of a URL is in it. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** Whether nothing is known of what the source offers, as it could not be reached or has nothing there. */
  readonly isAway: boolean;

  /** Whether the source was reached and says that there is no such object. */
  readonly isMissing: boolean;

  constructor(message: string, { isAway = false, isMissing = false, cause }: SourceErrorOptions = {}) {
    super(message.replace(/\s*\n\s*/g, ' '), { cause });
    this.isAway = isAway;
    this.isMissing = isMissing;
  }
}

/** Returns what `error` says, with the code of a system error where its text is empty. */
export function reason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reason(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return error.message || code || error.name;
}
