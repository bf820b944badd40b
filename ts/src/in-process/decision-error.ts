/** Why a request got no answer, as the caller in the same process gets it. */
import type { Failure } from '../engine.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';

/** A request that got no answer. The message and the status are those that a server would send. */
export class DecisionError extends Error {
  override readonly name = 'DecisionError';
  /** One of the list in `docs/errors.md`. */
  readonly code: ErrorCode;
  /** The HTTP status that goes with the code: 400 and 413 are the request's fault, 503 passes. */
  readonly status: number;
  /** When to ask again, in seconds, at least 1; undefined where asking again does not help. */
  readonly retryAfterSeconds: number | undefined;

  constructor({ code, message, retryAfterSeconds, cause }: Failure) {
    super(message, cause === undefined ? undefined : { cause: new Error(cause) });
    this.code = Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : 'internal';
    this.status = ERROR_STATUS[this.code];
    this.retryAfterSeconds = this.status === 503 ? Math.max(1, Math.ceil(retryAfterSeconds ?? 1)) : undefined;
  }
}
