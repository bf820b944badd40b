/** A model at the stand-in of a hub, and sources of it in this process. */
import type { TestContext } from 'node:test';
import { ModelCache } from '../../../src/model/cache.ts';
import { FetchedSource, type FetchedSourceOptions } from '../../../src/model/fetched-source.ts';
import { embeddedModel } from '../../../src/model/folder-source.ts';
import { HubClient, type HubClientOptions } from '../../../src/model/hub/client.ts';
import { fetchHubModel, type HubModel } from '../../../src/model/hub/fetch-hub-model.ts';
import { atCommit, parseHubName } from '../../../src/model/hub/name.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import type { StandInHub } from './stand-in-hub.ts';

export const never: AbortSignal = new AbortController().signal;
export const LIMITS = { maxBytes: 64 * 2 ** 20, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1024 };

const CARD = '---\nlicense: apache-2.0\n---\n# A model\n';

/** Returns the files of a repository with a model that no engine loads here. */
export const repositoryOf = (version: string) => ({
  '.gitattributes': '*.onnx filter=lfs',
  'README.md': CARD,
  'config.json': JSON.stringify({ name: 'm', version, layout: 'marker' }),
  'model.safetensors': 'weights of another program',
  'model.onnx': `graph ${version} `.repeat(1000),
  'tokenizer.json': '{}',
});

export interface SourceChanges extends Partial<Omit<HubModel, 'client' | 'name'>> {
  readonly model?: string;
  readonly token?: string | undefined;
  /** The folder of the fetched models. */
  readonly folder?: string;
  readonly client?: Partial<HubClientOptions>;
  readonly source?: Partial<FetchedSourceOptions>;
}

/** Returns a source of a model at the stand-in, whose server with large files it trusts. */
export function hubSource(t: TestContext, hub: StandInHub, changes: SourceChanges = {}): FetchedSource {
  const { model = 'hf:org/name', token, folder = temporaryFolder(t), cache = temporaryFolder(t) } = changes;
  const { isOffline = false, device = 'cpu', graph = '' } = changes;
  const name = parseHubName(model);
  const client = new HubClient({
    endpoint: new URL(hub.url),
    token: token === undefined ? undefined : { reveal: () => token },
    allowHttp: false,
    isTrusted: (url) => url.origin === hub.storageUrl,
    ...changes.client,
  });
  return new FetchedSource({
    fetch: (order) => fetchHubModel(order, { client, name, cache, isOffline, device, graph }),
    atRevision: (revision) => atCommit(name, revision),
    source: model,
    identity: model,
    name: 'name',
    pinned: '',
    isLocal: false,
    limits: LIMITS,
    cache: new ModelCache({ folder, maxBytes: 2 ** 30 }),
    refreshMs: 0,
    retryMs: 1,
    prove: async () => {},
    embedded: embeddedModel,
    ...changes.source,
  });
}
