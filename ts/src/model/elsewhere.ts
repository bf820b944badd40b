/** Sources whose models are fetched or unpacked. */
import { basename } from 'node:path';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { ModelCache } from './cache.ts';
import { type FetchProgress, TRANSFER_LIMITS } from './download.ts';
import { type Fetched, type FetchOrder, fetchModel } from './fetch-model.ts';
import { FetchedSource } from './fetched-source.ts';
import { FileStore } from './file-store.ts';
import { modelFolderName } from './folder-names.ts';
import { embeddedModel } from './folder-source.ts';
import { HubClient } from './hub/client.ts';
import { fetchHubModel } from './hub/fetch-hub-model.ts';
import { atCommit, type HubName } from './hub/name.ts';
import { isLoopbackName, type Location, publicSource, requireSafeScheme } from './location.ts';
import { S3Store } from './s3-store.ts';
import type { ModelSource } from './source.ts';
import type { Store } from './store.ts';
import { tryModel } from './trial.ts';
import { WebStore } from './web-store.ts';

/** A location whose model comes by way of the cache. */
type Elsewhere = Exclude<Location, { readonly at: 'embedded' | 'folder' }>;

/** A location with one store of files. */
type Stored = Exclude<Elsewhere, { readonly at: 'hub' }>;

/**
 * Returns the source at `location`.
 *
 * @throws Refusal when one of its settings is wrong.
 */
export function openElsewhere(location: Elsewhere, config: Config, progress?: FetchProgress): ModelSource {
  return new FetchedSource({
    fetch: location.at === 'hub' ? hubFetch(location.name, config) : storeFetch(location, config),
    ...(location.at === 'hub' && { atRevision: (revision: string) => atCommit(location.name, revision) }),
    progress,
    source: publicSource(config.model),
    identity: identityOf(location, config),
    name: defaultName(location),
    pinned: config.modelSha256.toLowerCase(),
    isLocal: location.at === 'file',
    limits: { maxBytes: config.modelMaxBytes, totalMs: config.modelFetchMs, ...TRANSFER_LIMITS },
    cache: new ModelCache({ folder: config.modelCache, maxBytes: config.modelCacheBytes }),
    refreshMs: config.refreshMinutes * 60_000,
    async prove(folder, signal) {
      await tryModel(config, folder, signal);
    },
    embedded: embeddedModel,
  });
}

/** Returns the name by which the cache knows a source: models of the same name from two servers are different ones. */
function identityOf({ at }: Elsewhere, { model, modelFile, s3Endpoint, hub }: Config): string {
  if (at === 's3') return `${s3Endpoint} ${model}`;
  return at === 'hub' ? `${hub.endpoint} ${model} ${modelFile}` : model;
}

type Fetch = (order: FetchOrder) => Promise<Fetched | 'unchanged'>;

function storeFetch(location: Stored, config: Config): Fetch {
  const store = openStore(location, config);
  return (order) => fetchModel({ ...order, store, packaging: location.packaging });
}

function hubFetch(name: HubName, { hub, device, modelFile, modelAllowHttp: allowHttp }: Config): Fetch {
  const client = new HubClient({ endpoint: hubEndpoint(hub, allowHttp), token: hub.token, allowHttp });
  const { cache, isOffline } = hub;
  return (order) => fetchHubModel(order, { client, name, cache, isOffline, device, graph: modelFile });
}

/**
 * Returns the address of the hub, checked.
 *
 * @throws Refusal when it is none, or a token would go over it unprotected.
 */
function hubEndpoint({ endpoint, token }: Config['hub'], allowHttp: boolean): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new Refusal(
      `HF_ENDPOINT: ${publicSource(endpoint)}: must be the address of a hub, such as https://hub.example`,
    );
  }
  requireSafeScheme(url, { setting: 'HF_ENDPOINT', allowHttp });
  if (token === undefined) return url;
  if (url.protocol === 'http:' && !isLoopbackName(url.hostname)) {
    throw new Refusal(`HF_TOKEN: is not sent to ${publicSource(endpoint)}: a token needs https://`);
  }
  if (!/^[\x21-\x7e]+$/.test(token.reveal())) throw new Refusal('HF_TOKEN: has characters that no token has');
  return url;
}

function openStore(location: Stored, config: Config): Store {
  switch (location.at) {
    case 'file':
      return new FileStore(location.path);
    case 'url':
      return new WebStore({ url: location.url, allowHttp: config.modelAllowHttp });
    case 's3':
      return s3Store(location, config);
  }
}

function s3Store({ bucket, key, packaging }: Extract<Location, { at: 's3' }>, config: Config): S3Store {
  const { s3Endpoint: endpoint, s3Region: region, s3PathStyle: pathStyle } = config;
  if (endpoint !== '') {
    requireSafeScheme(new URL(endpoint), { setting: 's3_endpoint', allowHttp: config.modelAllowHttp });
  }
  return new S3Store({ bucket, key, isFolder: packaging.kind === 'folder', endpoint, region, pathStyle });
}

/** Returns the name of the model folder where the source gives none: exported models without a name take it. */
function defaultName(location: Elsewhere): string {
  if (location.at === 'hub') return modelFolderName(basename(location.name.repository));
  const path = location.at === 'url' ? location.url.pathname : location.at === 's3' ? location.key : location.path;
  const parts = path.split(/[\\/]/).filter((part) => part !== '');
  const last = location.packaging.kind === 'manifest' ? parts.at(-2) : parts.at(-1);
  return modelFolderName(basename(last ?? '').replace(/\.(tar\.gz|tgz|zip)$/i, ''));
}
