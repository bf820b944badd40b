/** The error of a request without an answer, for callers in the same process. */
import type { Failure } from '../engine/contract.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';

/** The error of a request that got no answer. Its message and status are those that a server would send. */
export class DecisionError extends Error {
  override readonly name = 'DecisionError';
  /** The stable code of the error, one of the list in `docs/errors.md`. */
  readonly code: ErrorCode;
  /** The HTTP status of the code: 400 and 413 are the request's fault, 503 is temporary. */
  readonly status: number;
  /**
   * The time after which the request may be repeated, in seconds, at least 1; undefined if repeating it does not help.
   */
  readonly retryAfterSeconds: number | undefined;

  constructor({ code, message, retryAfterSeconds, cause }: Failure) {
    super(message, cause === undefined ? undefined : { cause: new Error(cause) });
    this.code = Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : 'internal';
    this.status = ERROR_STATUS[this.code];
    this.retryAfterSeconds = this.status === 503 ? Math.max(1, Math.ceil(retryAfterSeconds ?? 1)) : undefined;
  }

  /** Returns the fields that `JSON.stringify` writes: of an error it would leave out the message. */
  toJSON(): object {
    const { name, code, status, message, retryAfterSeconds } = this;
    return { name, code, status, message, retryAfterSeconds };
  }
}
