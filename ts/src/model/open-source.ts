/** Opens the source that the settings name. */
import { existsSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import type { FetchProgress } from './download.ts';
import { FolderSource } from './folder-source.ts';
import { hubNameIn, hubNameOfPage } from './hub/name.ts';
import { parseLocation } from './location.ts';
import type { ModelSource } from './source.ts';

/**
 * Returns the source of this process's models. Nothing is read from it yet.
 *
 * @param progress - The person who waits for a model from elsewhere.
 * @throws Refusal when the settings name no place that a model can come from.
 */
export async function openModelSource(config: Config, progress?: FetchProgress): Promise<ModelSource> {
  const source = await open(config, progress);
  identities.set(source, identityOf(config));
  return source;
}

/**
 * Returns the source of models under new settings: `before`, unless they name another source or other limits.
 *
 * @throws Refusal as `openModelSource` does.
 */
export async function reopenModelSource(config: Config, before: ModelSource): Promise<ModelSource> {
  return identities.get(before) === identityOf(config) ? before : openModelSource(config);
}

/** The settings of each source: the same settings keep their source, which remembers the offers that it has seen. */
const identities = new WeakMap<ModelSource, string>();

function identityOf(config: Config): string {
  const { model, modelFile, modelSha256, modelAllowHttp } = config;
  const { modelMaxBytes, modelFetchMs, modelCacheBytes, modelCache } = config;
  const { refreshMinutes, s3Endpoint, s3Region, s3PathStyle } = config;
  const cache = [modelCache, modelCacheBytes, modelMaxBytes, modelFetchMs, refreshMinutes];
  return JSON.stringify([model, modelFile, modelSha256, modelAllowHttp, cache, s3Endpoint, s3Region, s3PathStyle]);
}

async function open(config: Config, progress: FetchProgress | undefined): Promise<ModelSource> {
  const location = parseLocation(config);
  if (config.modelFile !== '' && location.at !== 'hub') {
    throw new Refusal('model_file: only a model from a hub (hf:…) is chosen by it');
  }
  const pinned = config.modelSha256.toLowerCase();
  if (location.at === 'embedded') return new FolderSource({ folder: '', pinned });
  if (location.at === 'folder') requireNoHubName(location.path, config);
  if (location.at === 'folder') return new FolderSource({ folder: location.path, pinned });
  // A start that needs no fetching or unpacking does not load the code for them.
  const { openElsewhere } = await import('./elsewhere.ts');
  return openElsewhere(location, config, progress);
}

/**
 * Requires that a model folder which is not there does not look like the name of a model at a hub.
 *
 * @throws Refusal with the name that may be meant.
 */
function requireNoHubName(path: string, { workDir, configDir }: Pick<Config, 'workDir' | 'configDir'>): void {
  if (existsSync(path)) return;
  for (const base of [workDir, configDir]) {
    const text = relative(base, path).split(sep).join('/');
    const [first = ''] = text.split('/');
    // A folder that is there means that a path was meant.
    const meant = existsSync(join(base, first)) ? undefined : (hubNameOfPage(text) ?? hubNameIn(text));
    if (meant !== undefined) throw new Refusal(`${path}: no such model folder; a model of a hub is named ${meant}`);
  }
}
