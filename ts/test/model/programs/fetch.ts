/** A program that a test kills: it fetches the archive at a URL into a cache and accepts it. */
import { ModelCache } from '../../../src/model/cache.ts';
import { fetchModel } from '../../../src/model/fetch-model.ts';
import { FetchedSource } from '../../../src/model/fetched-source.ts';
import { embeddedModel } from '../../../src/model/folder-source.ts';
import { WebStore } from '../../../src/model/web-store.ts';

const [url = '', folder = ''] = process.argv.slice(2);
const store = new WebStore({ url: new URL(url), allowHttp: false });
const source = new FetchedSource({
  fetch: (order) => fetchModel({ ...order, store, packaging: { kind: 'archive', format: 'tar' } }),
  source: url,
  identity: url,
  name: 'model',
  pinned: '',
  isLocal: false,
  limits: { maxBytes: 2 ** 30, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1024 },
  cache: new ModelCache({ folder, maxBytes: 2 ** 30 }),
  refreshMs: 0,
  prove: async () => {},
  embedded: embeddedModel,
});
await source.accept(await source.find(new AbortController().signal));
