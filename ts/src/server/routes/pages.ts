/**
 * `GET /`: the dashboard with the playground, only for the operator. `GET /assets/…`: the pages' static files, open.
 */
import type { Middleware } from 'koa';
import { homePage } from '../../dashboard/home.ts';
import type { Snapshot } from '../../dashboard/snapshot.ts';
import { HttpFailure } from '../../errors.ts';
import { type Address, formatAddress } from '../../network/address.ts';
import type { Assets } from '../assets.ts';
import type { RequestContext, RequestState } from '../middleware/request.ts';

/**
 * The policy of all pages: only the server's own files may run, be shown or be called, and no other page may embed
 * them.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/** Answers with a page. The caller of this function has set whether the page may be cached. */
export function answerPage(ctx: RequestContext, page: string): void {
  ctx.set({
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Content-Type': 'text/html; charset=utf-8',
  });
  ctx.body = page;
}

/** A host and a port without any characters that a shell or a program would interpret. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Returns the scheme, host and port that the page was requested from; if they are not plain, those that the server
 * listens on.
 */
export function originOf(ctx: RequestContext, listen: Address): string {
  const { host } = ctx.req.headers;
  const own = 'socket' in listen ? 'localhost' : formatAddress(listen);
  return `http://${host !== undefined && HOST.test(host) ? host : own}`;
}

interface HomeParts {
  readonly listen: Address;
  readonly assets: Assets;
  readonly snapshot: () => Snapshot;
}

export function showHome({ listen, assets, snapshot }: HomeParts): Middleware<RequestState> {
  return (ctx) => {
    const origin = originOf(ctx, listen);
    answerPage(ctx, homePage({ snapshot: snapshot(), assets: assets.paths, origin }));
  };
}

/** The files are cached forever, because a file's name changes with its content. */
const KEEP = 'public, max-age=31536000, immutable';

export function showAsset({ files }: Pick<Assets, 'files'>): Middleware<RequestState> {
  return (ctx) => {
    const file = files.get(ctx.path);
    if (!file) throw new HttpFailure('not_found', 'not found');
    ctx.set({ 'Content-Type': file.type, 'Cache-Control': KEEP, 'X-Content-Type-Options': 'nosniff' });
    ctx.body = file.body;
  };
}
