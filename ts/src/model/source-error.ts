/** The error of a source that gave no model. */

interface SourceErrorOptions {
  readonly isAway?: boolean;
  readonly isMissing?: boolean;
  readonly retryMs?: number | undefined;
  readonly cause?: unknown;
}

/** The longest message, in characters: a server may send a text of any length, and people read no more than this. */
export const MAX_MESSAGE_CHARS = 500;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal would do what they say.
const CONTROL_CHARACTERS = /\s*[\u0000-\u001f\u007f-\u009f\u2028\u2029]+\s*/g;

/** An error whose message is one line for the log: the object, its place and its fault, without secrets of a URL. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  /** Whether the source's offer is unknown, because the source could not be reached or has nothing there. */
  readonly isAway: boolean;

  /** Whether the source was reached and says that there is no such object. */
  readonly isMissing: boolean;

  /** The milliseconds for which the source wants to be left alone; undefined where it has not said so. */
  readonly retryMs: number | undefined;

  constructor(message: string, { isAway = false, isMissing = false, retryMs, cause }: SourceErrorOptions = {}) {
    super(message.replace(CONTROL_CHARACTERS, ' ').slice(0, MAX_MESSAGE_CHARS), { cause });
    this.isAway = isAway;
    this.isMissing = isMissing;
    this.retryMs = retryMs;
  }
}

/** Returns the message of `error`, or the code of a system error where the message is empty. */
export function reason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reason(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return error.message || code || error.name;
}
