/**
 * Who may call: the rules that keep web pages from using a server on their visitor's machine.
 *
 * The order, from the outside in: the `Host` (every route), the path and the method (404, 405), then on a decision the
 * caller's site, then the API key. The cheap and the general come first, and a wrong method is told before any secret.
 */
import type { Middleware } from 'koa';
import { isLoopback } from '../address.ts';
import type { Config } from '../config.ts';
import { HttpFailure } from '../errors.ts';
import type { RequestState } from './request.ts';

/**
 * On a loopback address, refuses a `Host` that is neither a loopback name nor allowed: it is how a page whose own name
 * was made to point at 127.0.0.1 (DNS rebinding) gives itself away. HTTP/1.0 callers without a `Host` may pass.
 */
export function checkHost({ listen, allowedHosts }: Pick<Config, 'listen' | 'allowedHosts'>): Middleware<RequestState> {
  const guarded = isLoopback(listen.host);
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  let latestAllowed: string | undefined;
  const isAllowed = (host: string) => {
    // Nearly every request names the same host: only a new one is looked at.
    if (host === latestAllowed) return true;
    const name = host.replace(/:\d*$/, '');
    if (!allowed.has(host) && !allowed.has(name) && !isLoopbackName(name)) return false;
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

/** Returns whether the host of a URL is this machine by its name alone. */
function isLoopbackName(name: string): boolean {
  return name.endsWith('.localhost') || isLoopback(name.replace(/^\[(.*)\]$/, '$1'));
}

/**
 * Refuses what another web site asks for, unless its origin is one of `corsOrigins`; without them, whatever the site.
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

/** Returns whether an `Origin` is the host that the request was sent to. Browsers spell both of them alike. */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && /^https?:\/\/(.+)$/i.exec(origin)?.[1]?.toLowerCase() === host.toLowerCase();
}
