/**
 * The rules on callers, which keep web pages from using a server on their visitor's machine.
 *
 * The order, from the outside in: the `Host` (every route), the path and the method (404, 405), then, for a decision,
 * the caller's site and the API key. The cheap and general checks come first, and a wrong method is reported before any
 * credential is checked.
 */
import type { Middleware } from 'koa';
import { HttpFailure } from '../../errors.ts';
import { isLoopback } from '../../network/address.ts';
import type { Config } from '../../settings/config.ts';
import type { RequestState } from './request.ts';

/**
 * Returns the middleware that, on a loopback address, refuses a `Host` that is neither a loopback name nor allowed.
 * Such a `Host` gives away a page whose own name was made to point at 127.0.0.1 (DNS rebinding). HTTP/1.0 callers
 * without a `Host` may pass.
 */
export function checkHost({ listen, allowedHosts }: Pick<Config, 'listen' | 'allowedHosts'>): Middleware<RequestState> {
  // No web page reaches a socket, so the name that its caller gives does not matter.
  const guarded = 'host' in listen && isLoopback(listen.host);
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  let latestAllowed: string | undefined;
  const isAllowed = (host: string) => {
    // Nearly every request names the same host, so only a different one is checked.
    if (host === latestAllowed) return true;
    const name = host.replace(/:\d*$/, '');
    if (!allowed.has(host) && !allowed.has(name) && !namesThisMachine(name)) return false;
    latestAllowed = host;
    return true;
  };
  return (ctx, next) => {
    const { host } = ctx.req.headers;
    if (host === undefined) {
      if (ctx.req.httpVersion !== '1.0') throw new HttpFailure('bad_request', 'Host header missing');
    } else if (guarded && !isAllowed(host.toLowerCase())) {
      throw new HttpFailure('bad_host', 'Host not allowed; list it in allowed_hosts');
    }
    return next();
  };
}

/** Whether a URL's host name by itself shows that it is this machine. */
function namesThisMachine(name: string): boolean {
  return name.endsWith('.localhost') || isLoopback(name.replace(/^\[(.*)\]$/, '$1'));
}

/**
 * Returns the middleware that refuses requests from another web site, unless its origin is one of `corsOrigins`;
 * without `corsOrigins`, it refuses all of them.
 */
export function refuseCrossSite(corsOrigins?: readonly string[]): Middleware<RequestState> {
  const listed = new Set(corsOrigins);
  const message = `cross-site request refused${corsOrigins ? '; list its origin in cors_origins' : ''}`;
  return (ctx, next) => {
    const { origin, host, 'sec-fetch-site': site } = ctx.req.headers;
    if (origin !== undefined && listed.has(origin)) return next();
    if (site === 'cross-site' || (origin !== undefined && !isOwnOrigin(origin, host))) {
      throw new HttpFailure('cross_site', message);
    }
    return next();
  };
}

/** Whether an `Origin` is the host that the request was sent to. Browsers spell both alike. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && /^https?:\/\/(.+)$/i.exec(origin)?.[1]?.toLowerCase() === host.toLowerCase();
}
