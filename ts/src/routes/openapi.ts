/** `GET /openapi.json` and `GET /docs`: the API, for programs and for people. Open; nothing is loaded before it is asked for. */
import type Router from '@koa/router';
import type { Assets } from '../dashboard/assets.ts';
import { readDocsAssets } from '../dashboard/assets.ts';
import type { RequestState } from '../middleware/request.ts';
import { answerPage, showAsset } from './pages.ts';

/** Something that is made when it is first asked for. */
function lazy<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export function openApiRoutes(router: Router<RequestState>): void {
  const document = lazy(async () => {
    const { openApiDocument } = await import('../openapi/document.ts');
    // Bytes are shared by all answers; a text would be copied for each, and lie there until its caller takes it.
    return Buffer.from(JSON.stringify(openApiDocument()));
  });
  const assets = lazy((): Assets<'script' | 'style'> => readDocsAssets());

  router.get('/openapi.json', async (ctx) => {
    ctx.set({
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff',
    });
    ctx.body = await document();
  });

  router.get('/docs', async (ctx) => {
    const { docsPage } = await import('../dashboard/docs.ts');
    ctx.set({ 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' });
    answerPage(ctx, docsPage(assets().paths));
  });

  router.get('/docs/:name', (ctx, next) => showAsset(assets())(ctx, next));
}
