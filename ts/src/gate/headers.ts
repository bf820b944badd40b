/** Which headers go through the gate: those that are meant for the other end, in both directions. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { HttpFailure } from '../errors.ts';
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
  'x-request-id',
  'x-typesafe-request-id',
  STATE_HEADER,
]);

/**
 * Returns the headers for the server. How long the body is comes from `req` alone, never from what `Connection` names:
 * were its length dropped, the body would be read as the next request.
 */
export function requestHeaders(req: IncomingMessage, requestId: string): OutgoingHttpHeaders {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  const rest = Object.entries(endToEnd(req.headers)).filter(([name]) => !OWN.has(name));
  return {
    ...Object.fromEntries(rest),
    ...(length !== undefined && { 'content-length': length }),
    ...(coding !== undefined && { 'transfer-encoding': 'chunked' }),
    'x-request-id': requestId,
  };
}

/** Returns the headers for the caller. The ids are the gate's, which the server was given. */
export function answerHeaders({ headers }: IncomingMessage): Record<string, string | string[]> {
  const { 'x-request-id': _, 'x-typesafe-request-id': __, ...rest } = endToEnd(headers);
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
 * Checks that a request is one whose end everybody sees at the same byte, and that asks for HTTP.
 *
 * @throws HttpFailure `bad_request`
 */
export function requireForwardable({ headers, httpVersion }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  // Node reads other codings before `chunked`, and chunks in HTTP/1.0; other readers do not.
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) {
    throw new HttpFailure('bad_request', 'unsupported Transfer-Encoding; use chunked', { Connection: 'close' });
  }
  // Other protocols may be offered and need not be taken.
  if (/(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers.upgrade ?? '')) {
    throw new HttpFailure('bad_request', 'there is no WebSocket here', { Connection: 'close' });
  }
}
