/** A program that a test kills: it fetches the model `org/name` from a hub into two caches and accepts it. */

import { ModelCache } from '../../../src/model/cache.ts';
import { TRANSFER_LIMITS } from '../../../src/model/download.ts';
import { FetchedSource } from '../../../src/model/fetched-source.ts';
import { embeddedModel } from '../../../src/model/folder-source.ts';
import { HubClient } from '../../../src/model/hub/client.ts';
import { fetchHubModel } from '../../../src/model/hub/fetch-hub-model.ts';
import { parseHubName } from '../../../src/model/hub/name.ts';

const [url = '', cache = '', folder = ''] = process.argv.slice(2);
const model = 'hf:org/name';
const client = new HubClient({ endpoint: new URL(url), token: undefined, allowHttp: false });
const hub = { client, name: parseHubName(model), cache, isOffline: false, device: 'cpu', graph: '' };
const source = new FetchedSource({
  fetch: (order) => fetchHubModel(order, hub),
  source: model,
  identity: model,
  name: 'name',
  pinned: '',
  isLocal: false,
  limits: { maxBytes: 2 ** 30, totalMs: 60_000, ...TRANSFER_LIMITS },
  cache: new ModelCache({ folder, maxBytes: 2 ** 30 }),
  refreshMs: 0,
  prove: async () => {},
  embedded: embeddedModel,
});
await source.accept(await source.find(new AbortController().signal));
