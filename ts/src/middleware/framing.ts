/** Where the body of a request ends: told by one header that everybody reads alike, or the request is refused. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import { HttpFailure } from '../errors.ts';
import type { RequestState } from './request.ts';

/** How long a body is: so many bytes, 0 when there is none, or as long as its chunks say. */
export type Framing = number | 'chunked';

/** More than 15 digits are beyond the whole numbers that a double has. */
const LENGTH = /^\d{1,15}$/;

/** HTTP/1.0 has no chunks, and what says another version here is no HTTP/1. */
const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1']);

/**
 * Refuses requests whose body other readers could see end at another byte, and all that follows on their connection:
 * where the next request begins is as doubtful.
 */
export function requireFraming(): Middleware<RequestState> {
  const doubtful = new WeakSet<Socket>();
  return (ctx, next) => {
    const { req } = ctx;
    if (doubtful.has(req.socket)) throw refused('malformed HTTP request');
    try {
      framingOf(req);
    } catch (error) {
      doubtful.add(req.socket);
      throw error;
    }
    return next();
  };
}

/**
 * Returns how long the body of `req` is, from the header lines as they came: `headers` joins some and drops others.
 *
 * @throws HttpFailure `bad_request`, whose answer closes the connection
 */
export function framingOf({ rawHeaders, httpVersion }: IncomingMessage): Framing {
  if (!VERSIONS.has(httpVersion)) throw refused('unsupported HTTP version; use 1.1');
  const [length, ...lengths] = valuesOf('content-length', rawHeaders);
  const [coding, ...codings] = valuesOf('transfer-encoding', rawHeaders);
  if (valuesOf('host', rawHeaders).length > 1) throw refused('more than one Host');
  if (lengths.length > 0) throw refused('more than one Content-Length');
  if (coding === undefined) return lengthOf(length ?? '0');
  // Node reads other codings before `chunked`, and chunks in HTTP/1.0; other readers do not.
  const isPlain = codings.length === 0 && coding.toLowerCase() === 'chunked' && httpVersion === '1.1';
  if (!isPlain) throw refused('unsupported Transfer-Encoding; use chunked');
  if (length !== undefined) throw refused('both Content-Length and Transfer-Encoding');
  return 'chunked';
}

/** Returns the values of the header `name`, one for each line. */
function valuesOf(name: string, rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

function lengthOf(text: string): number {
  if (!LENGTH.test(text)) throw refused('malformed Content-Length');
  return Number(text);
}

function refused(message: string): HttpFailure {
  return new HttpFailure('bad_request', message, { Connection: 'close' });
}
