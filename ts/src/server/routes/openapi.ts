/**
 * `GET /version`, `GET /openapi.json` and `GET /docs`: the API, for programs and for people. They are open, and the
 * latter two are loaded on the first request only.
 */
import type Router from '@koa/router';
import { packageVersion } from '../../version.ts';
import type { Assets } from '../assets.ts';
import { readDocsAssets } from '../assets.ts';
import type { RequestState } from '../middleware/request.ts';
import { answerPage, showAsset } from './pages.ts';

/** Returns a function that makes its value on the first call and returns the same value on every later one. */
function lazy<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export function openApiRoutes(router: Router<RequestState>): void {
  const document = lazy(async () => {
    const { openApiDocument } = await import('../../openapi/document.ts');
    // All answers share these bytes; a text would be copied for each answer and stay in memory until its caller has
    // taken it.
    return Buffer.from(JSON.stringify(openApiDocument()));
  });
  const assets = lazy((): Assets<'script' | 'style'> => readDocsAssets());

  const version = { version: packageVersion() };
  router.get('/version', (ctx) => {
    ctx.body = version;
  });

  router.get('/openapi.json', async (ctx) => {
    ctx.set({
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff',
    });
    ctx.body = await document();
  });

  router.get('/docs', async (ctx) => {
    const { docsPage } = await import('../../dashboard/docs.ts');
    ctx.set({ 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' });
    answerPage(ctx, docsPage(assets().paths));
  });

  router.get('/docs/:name', (ctx, next) => showAsset(assets())(ctx, next));
}
