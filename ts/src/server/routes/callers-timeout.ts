/** The time for which a caller waits for the answer, by its own headers. */
import type { IncomingHttpHeaders } from 'node:http';
import { HttpFailure } from '../../errors.ts';
import { TIMEOUT_HEADER } from '../../schemas/names.ts';

/**
 * The same header as set by an Envoy proxy in front. It comes from Envoy, so an unreadable value is no fault of the
 * caller.
 */
const ENVOY_HEADER = 'x-envoy-expected-rq-timeout-ms';

/** This is longer than any server runs, and exact as a number. */
const LONGEST_MS = 10 ** 12;

/**
 * Returns the number of milliseconds that the answer may take; undefined if the request does not say. With both headers
 * the shorter time holds, since a proxy hangs up at its own.
 *
 * @throws HttpFailure `bad_request` when `x-request-timeout-ms` is not a whole number above 0.
 */
export function callersTimeoutMs(headers: IncomingHttpHeaders): number | undefined {
  const own = headers[TIMEOUT_HEADER];
  const ownMs = headerMs(own);
  if (own !== undefined && ownMs === undefined) {
    throw new HttpFailure('bad_request', `${TIMEOUT_HEADER} must be a whole number of milliseconds, at least 1`);
  }
  const envoysMs = headerMs(headers[ENVOY_HEADER]);
  return ownMs === undefined || envoysMs === undefined ? (ownMs ?? envoysMs) : Math.min(ownMs, envoysMs);
}

/**
 * Returns the milliseconds in a header, at most `LONGEST_MS`; undefined if it is not a whole number above 0. A number
 * with more digits than a double holds exactly also means a time without end.
 */
function headerMs(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^\d+$/.test(value)) return undefined;
  const ms = Number(value);
  return ms === 0 ? undefined : Math.min(ms, LONGEST_MS);
}
