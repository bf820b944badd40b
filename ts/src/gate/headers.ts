/** The headers that pass the gate: those meant for the other end, in both directions. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { HttpFailure } from '../errors.ts';
import { STATE_HEADER } from '../network/state-header.ts';
import type { Framing } from '../server/middleware/framing.ts';

/** Headers that are meant for the next connection only (RFC 9110, 7.6.1), and their older relatives. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * The headers that the gate answers or sets itself: the caller's key stays at the gate, and the server is called by its
 * own name.
 */
const OWN = new Set([
  'authorization',
  'expect',
  'host',
  'content-length',
  'via',
  'x-request-id',
  'x-typesafe-request-id',
  STATE_HEADER,
]);

/** The headers that the gate sends to the server itself. */
interface OwnHeaders {
  readonly requestId: string;
  /** The value of `Via`. */
  readonly via: string;
  /** The key of the server behind the gate. */
  readonly key: string | undefined;
}

/** Returns the headers for the server, without those of the body's length: see `framingHeaders`. */
export function requestHeaders(req: IncomingMessage, { requestId, via, key }: OwnHeaders): OutgoingHttpHeaders {
  const rest = Object.entries(endToEnd(req.headers)).filter(([name]) => !OWN.has(name));
  return {
    ...Object.fromEntries(rest),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    via,
    'x-request-id': requestId,
  };
}

/** The methods whose body has a meaning (RFC 9110, 9.3); for the other methods, other readers do not expect a body. */
const WITH_BODY: ReadonlySet<string | undefined> = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Returns the length of the forwarded body; undefined for a method whose body has no meaning, which is not forwarded.
 */
export function outgoingFraming(method: string | undefined, framing: Framing): Framing | undefined {
  return WITH_BODY.has(method) ? framing : undefined;
}

/** Returns the header with a body's length; a request without one has no body. */
export function framingHeaders(framing: Framing | undefined): OutgoingHttpHeaders {
  if (framing === undefined) return {};
  return framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : { 'content-length': framing };
}

/** Returns the headers for the caller. The ids in the answer are the gate's own, which the server was given. */
export function answerHeaders({ headers, statusCode }: IncomingMessage): Record<string, string | string[]> {
  const { 'x-request-id': _, 'x-typesafe-request-id': __, ...rest } = endToEnd(headers);
  // A 204 has no body, even if it has a length: a reader that trusts the length would wait for a body.
  if (statusCode === 204) delete rest['content-length'];
  return rest;
}

function endToEnd(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  const kept = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || dropped.has(name) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(kept);
}

/**
 * Checks that a request asks for HTTP. Offers of other protocols than WebSocket may be ignored.
 *
 * @throws HttpFailure `bad_request`
 */
export function requireHttp({ headers }: IncomingMessage): void {
  if (/(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers.upgrade ?? '')) {
    throw new HttpFailure('bad_request', 'there is no WebSocket here', { Connection: 'close' });
  }
}
