/** Which headers go through the gate: those that are meant for the other end, in both directions. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { HttpFailure } from '../errors.ts';
import type { Framing } from '../middleware/framing.ts';
import { STATE_HEADER } from '../state-header.ts';

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

/** What the gate answers itself, or says anew: the key stays here, and the server is called by its own name. */
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

/** What the gate says to the server itself. */
export interface OwnHeaders {
  readonly requestId: string;
  /** The value of `Via`. */
  readonly via: string;
  /** The key of the server behind the gate. */
  readonly key: string | undefined;
}

/** Returns the headers for the server, without those that say how long the body is: see `framingHeaders`. */
export function requestHeaders(req: IncomingMessage, { requestId, via, key }: OwnHeaders): OutgoingHttpHeaders {
  const rest = Object.entries(endToEnd(req.headers)).filter(([name]) => !OWN.has(name));
  return {
    ...Object.fromEntries(rest),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    via,
    'x-request-id': requestId,
  };
}

/** The methods whose body means something (RFC 9110, 9.3); other readers do not look for one after the rest. */
const WITH_BODY: ReadonlySet<string | undefined> = new Set(['POST', 'PUT', 'PATCH']);

/** Returns how long the body is that goes on: that of a method whose body means nothing stays here. */
export function outgoingFraming(method: string | undefined, framing: Framing): Framing | undefined {
  return WITH_BODY.has(method) ? framing : undefined;
}

/** Returns the header that says how long a body is. Without any there is no body. */
export function framingHeaders(framing: Framing | undefined): OutgoingHttpHeaders {
  if (framing === undefined) return {};
  return framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : { 'content-length': framing };
}

/** Returns the headers for the caller. The ids are the gate's, which the server was given. */
export function answerHeaders({ headers, statusCode }: IncomingMessage): Record<string, string | string[]> {
  const { 'x-request-id': _, 'x-typesafe-request-id': __, ...rest } = endToEnd(headers);
  // A 204 has no body, whatever its length says: a reader that believes it would wait for one.
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
 * Checks that a request asks for HTTP. Other protocols may be offered and need not be taken.
 *
 * @throws HttpFailure `bad_request`
 */
export function requireHttp({ headers }: IncomingMessage): void {
  if (/(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers.upgrade ?? '')) {
    throw new HttpFailure('bad_request', 'there is no WebSocket here', { Connection: 'close' });
  }
}
