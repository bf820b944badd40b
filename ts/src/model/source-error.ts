/** Why a source gave no model. */

interface SourceErrorOptions {
  readonly isAway?: boolean;
  readonly isMissing?: boolean;
  readonly cause?: unknown;
}

/** More than this is not read by anybody: what a server sends may be of any length. */
const MAX_LENGTH = 500;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal would do what they say.
const CONTROL_CHARACTERS = /\s*[\u0000-\u001f\u007f-\u009f\u2028\u2029]+\s*/g;

/** One line for the log: what, where, and what is wrong with it. No secret of a URL is in it. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** Whether nothing is known of what the source offers, as it could not be reached or has nothing there. */
  readonly isAway: boolean;

  /** Whether the source was reached and says that there is no such object. */
  readonly isMissing: boolean;

  constructor(message: string, { isAway = false, isMissing = false, cause }: SourceErrorOptions = {}) {
    super(message.replace(CONTROL_CHARACTERS, ' ').slice(0, MAX_LENGTH), { cause });
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
