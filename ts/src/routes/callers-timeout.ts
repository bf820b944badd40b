/** How long a caller waits for the answer, by its own word. */
import type { IncomingHttpHeaders } from 'node:http';
import { HttpFailure } from '../errors.ts';

/** Says how long a request may take, in milliseconds from its arrival. */
export const TIMEOUT_HEADER = 'x-request-timeout-ms';
/** Says the same where Envoy stands in front; it is Envoy's, so a value that cannot be read is nobody's fault here. */
const ENVOY_HEADER = 'x-envoy-expected-rq-timeout-ms';

/** Longer than any server runs, and exact as a number. */
const LONGEST_MS = 10 ** 12;

/**
 * Returns how many milliseconds the answer may take; nothing where the request does not say. Where both headers do, the shorter
 * time holds: a proxy hangs up at its own.
 *
 * @throws HttpFailure `bad_request` when `x-request-timeout-ms` is not a whole number above 0.
 */
export function callersTimeoutMs(headers: IncomingHttpHeaders): number | undefined {
  const own = headers[TIMEOUT_HEADER];
  const ownMs = milliseconds(own);
  if (own !== undefined && ownMs === undefined) {
    throw new HttpFailure('bad_request', `${TIMEOUT_HEADER} must be a whole number of milliseconds, at least 1`);
  }
  const envoysMs = milliseconds(headers[ENVOY_HEADER]);
  return ownMs === undefined || envoysMs === undefined ? (ownMs ?? envoysMs) : Math.min(ownMs, envoysMs);
}

/** A number of more digits than can be counted exactly is a time that does not end either. */
function milliseconds(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^\d+$/.test(value)) return undefined;
  const ms = Number(value);
  return ms === 0 ? undefined : Math.min(ms, LONGEST_MS);
}
