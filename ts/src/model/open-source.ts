/** From the settings to the source that they name. */
import type { Config } from '../config.ts';
import { FolderSource } from './folder-source.ts';
import { parseLocation } from './location.ts';
import type { ModelSource } from './source.ts';

/**
 * Returns where the models of this process come from. Nothing is read yet.
 *
 * @throws Refusal when the settings name nothing that a model can come from.
 */
export async function openModelSource(config: Config): Promise<ModelSource> {
  const source = await open(config);
  identities.set(source, identityOf(config));
  return source;
}

/**
 * Returns where the models come from under new settings: `before`, unless they name another source or other limits.
 *
 * @throws Refusal as `openModelSource` does.
 */
export async function reopenModelSource(config: Config, before: ModelSource): Promise<ModelSource> {
  return identities.get(before) === identityOf(config) ? before : openModelSource(config);
}

/** A source knows what it has seen, so the same settings keep it. */
const identities = new WeakMap<ModelSource, string>();

function identityOf(config: Config): string {
  const { model, modelSha256, modelAllowHttp, modelMaxBytes, modelFetchMs, modelCacheBytes, modelCache } = config;
  const { refreshMinutes, s3Endpoint, s3Region, s3PathStyle } = config;
  const cache = [modelCache, modelCacheBytes, modelMaxBytes, modelFetchMs, refreshMinutes];
  return JSON.stringify([model, modelSha256, modelAllowHttp, cache, s3Endpoint, s3Region, s3PathStyle]);
}

async function open(config: Config): Promise<ModelSource> {
  const location = parseLocation(config);
  const pinned = config.modelSha256.toLowerCase();
  if (location.at === 'embedded') return new FolderSource({ folder: '', pinned });
  if (location.at === 'folder') return new FolderSource({ folder: location.path, pinned });
  // What fetches and unpacks is not read by a start that needs none of it.
  const { openElsewhere } = await import('./elsewhere.ts');
  return openElsewhere(location, config);
}
