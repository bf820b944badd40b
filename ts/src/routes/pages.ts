/** `GET /`: the dashboard with the playground on it; the operator's. `GET /assets/…`: the pages' static files; open. */
import type { Middleware } from 'koa';
import { type Address, formatAddress } from '../address.ts';
import type { Assets } from '../dashboard/assets.ts';
import { homePage } from '../dashboard/home.ts';
import type { Snapshot } from '../dashboard/snapshot.ts';
import { HttpFailure } from '../errors.ts';
import type { RequestContext, RequestState } from '../middleware/request.ts';

/** Nothing but our own files runs, is shown or is called, and nobody puts the page into theirs. */
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

/** Answers with a page. Who calls this has said whether it may be kept. */
export function answerPage(ctx: RequestContext, page: string): void {
  ctx.set({
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Content-Type': 'text/html; charset=utf-8',
  });
  ctx.body = page;
}

/** A host and a port, with nothing in them that a shell or a program would read as its own. */
const HOST = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Returns scheme, host and port that the page was asked from, else those that the server listens on. */
export function originOf(ctx: RequestContext, listen: Address): string {
  const { host } = ctx.req.headers;
  return `http://${host !== undefined && HOST.test(host) ? host : formatAddress(listen)}`;
}

export interface HomeParts {
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

/** A file's name changes with its content, so that it may be kept for ever. */
const KEEP = 'public, max-age=31536000, immutable';

export function showAsset({ files }: Pick<Assets, 'files'>): Middleware<RequestState> {
  return (ctx) => {
    const file = files.get(ctx.path);
    if (!file) throw new HttpFailure('not_found', 'not found');
    ctx.set({ 'Content-Type': file.type, 'Cache-Control': KEEP, 'X-Content-Type-Options': 'nosniff' });
    ctx.body = file.body;
  };
}
