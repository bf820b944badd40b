/** Requests to a server at an address, by TCP or over a unix socket, which `fetch` cannot reach. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { isIPv6 } from 'node:net';
import { addAbortSignal, Readable } from 'node:stream';
import { type Address, formatAddress } from './address.ts';

/**
 * The scheme of a URL whose host is the path of a socket, percent-encoded, as in
 * `http+unix://%2Frun%2Fsvc.sock/health`. Relative references resolve in it as they do over HTTP.
 */
const SOCKET_SCHEME = 'http+unix:';

/** The parts of `fetch`'s options that are used here. */
export interface Reaching {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly redirect?: 'error' | 'manual';
  readonly signal?: AbortSignal;
}

/** Returns the URL of the server on a socket. */
export function socketUrl(socket: string): URL {
  return new URL(`${SOCKET_SCHEME}//${encodeURIComponent(socket)}/`);
}

/** Returns the path of the socket in a URL; undefined for a URL of another scheme. */
export function socketOf({ protocol, hostname }: URL): string | undefined {
  return protocol === SOCKET_SCHEME ? decodeURIComponent(hostname) : undefined;
}

/** Returns the name of the server in a URL, as a person would write it: its origin, or `unix:/PATH`. */
export function serverName(url: URL): string {
  const socket = socketOf(url);
  return socket === undefined ? url.origin : `unix:${socket}`;
}

/**
 * Returns the URL for requests to a server that listens on `address`: one that listens on every address of the machine
 * is reached by loopback.
 */
export function urlOf(address: Address): URL {
  if ('socket' in address) return socketUrl(address.socket);
  return new URL(`http://${formatAddress({ ...address, host: reachable(address.host) })}/`);
}

function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return isIPv6(host) && /^[0:]+$/.test(host) ? '::1' : host;
}

/** Requests `url` as `fetch` does, also over a socket. A server on a socket is followed nowhere else. */
export function reach(url: URL, options: Reaching): Promise<Response> {
  const socketPath = socketOf(url);
  return socketPath === undefined ? fetch(url, options) : overSocket({ socketPath, url, options });
}

interface SocketRequest {
  readonly socketPath: string;
  readonly url: URL;
  readonly options: Reaching;
}

async function overSocket({ socketPath, url, options }: SocketRequest): Promise<Response> {
  const { method = 'GET', headers = {}, body, signal } = options;
  const length = body === undefined ? {} : { 'content-length': String(body.length) };
  const path = `${url.pathname}${url.search}`;
  try {
    const sent = request({ socketPath, path, method, headers: { ...headers, ...length }, signal }).end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return responseOf(answer, signal);
  } catch (error) {
    throw signal?.aborted ? signal.reason : new TypeError('fetch failed', { cause: error });
  }
}

/** The statuses of answers that have no body. */
const EMPTY: ReadonlySet<number> = new Set([204, 205, 304]);

function responseOf(answer: IncomingMessage, signal: AbortSignal | undefined): Response {
  const { statusCode: status = 0, headers } = answer;
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, each]),
  );
  if (EMPTY.has(status)) answer.resume();
  if (signal !== undefined) addAbortSignal(signal, answer);
  const body = EMPTY.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  return new Response(body, { status, headers: entries });
}
