/**
 * The end of a request's body: one header must state it in a way that every reader understands alike, or the request is
 * refused.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import { HttpFailure } from '../../errors.ts';
import type { RequestState } from './request.ts';

/** The length of a body: its number of bytes, 0 without a body, or `chunked` if its chunks determine it. */
export type Framing = number | 'chunked';

/** Numbers of more than 15 digits exceed the whole numbers that a double represents exactly. */
const LENGTH = /^\d{1,15}$/;

/** The supported versions of HTTP. Any other version in a request here is not HTTP/1. */
const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1']);

/**
 * Returns the middleware that refuses requests whose body other readers could see end at another byte. All later
 * requests on the same connection are refused as well, since it is just as doubtful where they begin.
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
 * Returns the length of the body of `req`, from the raw header lines: `headers` joins some lines and drops others.
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
  // Node also accepts other codings before `chunked`, and chunks in HTTP/1.0; other readers do not.
  const isPlain = codings.length === 0 && coding.toLowerCase() === 'chunked' && httpVersion === '1.1';
  if (!isPlain) throw refused('unsupported Transfer-Encoding; use chunked');
  if (length !== undefined) throw refused('both Content-Length and Transfer-Encoding');
  return 'chunked';
}

/** Returns the values of the header `name`, one for each of its lines. */
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
