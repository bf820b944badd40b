/** Sources whose models are fetched or unpacked. */
import { basename } from 'node:path';
import type { Config } from '../settings/config.ts';
import { ModelCache } from './cache.ts';
import { TRANSFER_LIMITS } from './download.ts';
import { FetchedSource } from './fetched-source.ts';
import { FileStore } from './file-store.ts';
import { modelFolderName } from './folder-names.ts';
import { embeddedModel } from './folder-source.ts';
import { type Location, publicSource, requireSafeScheme } from './location.ts';
import { S3Store } from './s3-store.ts';
import type { ModelSource } from './source.ts';
import type { Store } from './store.ts';
import { tryModel } from './trial.ts';
import { WebStore } from './web-store.ts';

/** A location whose model comes by way of the cache. */
type Elsewhere = Exclude<Location, { readonly at: 'embedded' | 'folder' }>;

/**
 * Returns the source at `location`.
 *
 * @throws Refusal when one of its settings is wrong.
 */
export function openElsewhere(location: Elsewhere, config: Config): ModelSource {
  return new FetchedSource({
    store: openStore(location, config),
    packaging: location.packaging,
    source: publicSource(config.model),
    identity: location.at === 's3' ? `${config.s3Endpoint} ${config.model}` : config.model,
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

function openStore(location: Elsewhere, config: Config): Store {
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
  const path = location.at === 'url' ? location.url.pathname : location.at === 's3' ? location.key : location.path;
  const parts = path.split(/[\\/]/).filter((part) => part !== '');
  const last = location.packaging.kind === 'manifest' ? parts.at(-2) : parts.at(-1);
  return modelFolderName(basename(last ?? '').replace(/\.(tar\.gz|tgz|zip)$/i, ''));
}
