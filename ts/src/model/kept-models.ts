/** The models from elsewhere that are kept on this disk: what they are, and their removal. */
import { join } from 'node:path';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { type KeptModel, ModelCache } from './cache.ts';
import { type Family, familyOf, type KnownFamily, knownFamily } from './family.ts';
import { CARD_FILE, licenceIn } from './hub/card.ts';
import { chooseFiles } from './hub/choice.ts';
import { CachedRepository } from './hub/hub-cache.ts';
import type { HubFile } from './hub/listing.ts';
import { type HubName, isHubName, parseHubName, pathInRepository } from './hub/name.ts';
import { publicSource } from './location.ts';

/** A kept model, as a person wants to know it. */
export interface ModelSummary extends Omit<KeptModel, 'paths'> {
  readonly family?: Family;
  /** The licence that the card of the model names. */
  readonly licence?: string;
  /** The folder of its files in the hub's cache. */
  readonly snapshot?: string;
}

type Places = Pick<Config, 'modelCache' | 'modelCacheBytes' | 'hub' | 'device' | 'modelFile'>;

/** Returns all models from elsewhere, the one that was used last in front. */
export async function keptModels(config: Places): Promise<ModelSummary[]> {
  return Promise.all((await cacheOf(config).kept()).map((model) => summary(model, config)));
}

/**
 * Removes a model, all of its revisions among them unless the name has one, and its files in the hub's cache.
 *
 * @param model - The model as `model` in the settings names it.
 * @returns the removed models.
 * @throws Refusal when there is none, or a running process uses it.
 */
export async function removeModels(model: string, config: Places): Promise<readonly KeptModel[]> {
  const [cache, source] = [cacheOf(config), publicSource(model)];
  const name = isHubName(model) ? parseHubName(model) : undefined;
  const found = (await cache.kept()).filter((kept) => kept.source === source);
  if (found.some(({ isInUse }) => isInUse)) throw new Refusal(`${source}: a running server uses it`);
  for (const { sha256 } of found) {
    if (!(await cache.discard(sha256))) throw new Refusal(`${source}: cannot be removed from ${config.modelCache}`);
  }
  await cache.forget(source);
  const isInHub = name !== undefined && (await removeFromHub(name, found, config));
  if (found.length === 0 && !isInHub) throw new Refusal(`${source}: is not kept here; see svc model list`);
  return found;
}

function cacheOf({ modelCache: folder, modelCacheBytes: maxBytes }: Places): ModelCache {
  return new ModelCache({ folder, maxBytes });
}

async function summary({ paths: _, ...model }: KeptModel, config: Places): Promise<ModelSummary> {
  const snapshot = snapshotOf(model, config);
  const family = await familyOf(model.folder);
  const licence = await licenceOf(snapshot);
  return {
    ...model,
    ...(family !== undefined && { family }),
    ...(licence !== undefined && { licence }),
    ...(snapshot !== undefined && { snapshot: snapshot.folder }),
  };
}

interface Snapshot {
  /** The folder of the commit, which has the card, and the folder of the model in it. */
  readonly top: string;
  readonly folder: string;
}

function snapshotOf(
  { source, revision }: Pick<KeptModel, 'source' | 'revision'>,
  { hub }: Places,
): Snapshot | undefined {
  if (source === undefined || revision === undefined || !isHubName(source)) return undefined;
  const { repository, folder } = parseHubName(source);
  const top = new CachedRepository(hub.cache, repository).snapshot(revision);
  return { top, folder: join(top, ...folder.split('/')) };
}

async function licenceOf(snapshot: Snapshot | undefined): Promise<string | undefined> {
  if (snapshot === undefined) return undefined;
  return (await licenceIn(snapshot.folder)) ?? licenceIn(snapshot.top);
}

/** Removes the files of models from the hub's cache; returns whether there were any. */
async function removeFromHub(name: HubName, found: readonly KeptModel[], config: Places): Promise<boolean> {
  const repository = new CachedRepository(config.hub.cache, name.repository);
  const now = await repository.commitOf(name.revision);
  const commits = new Set([...found.flatMap(({ revision }) => revision ?? []), ...(now === undefined ? [] : [now])]);
  const inRepository = (path: string) => pathInRepository(name, path);
  let isRemoved = false;
  for (const commit of commits) {
    const kept = found.filter(({ revision }) => revision === commit).flatMap(({ paths }) => paths);
    const files = await repository.filesAt(commit, name.folder);
    const family = await knownFamily(join(repository.snapshot(commit), ...name.folder.split('/')));
    const paths = new Set([...kept, ...unkeptPaths(files, family, config), CARD_FILE].map(inRepository)).add(CARD_FILE);
    const before = await repository.filesAt(commit);
    isRemoved ||= before.some(({ path }) => paths.has(path));
    await repository.remove(commit, [...paths]);
  }
  return isRemoved;
}

/** Returns the paths of a model that was fetched and not taken, since its trial has failed. */
function unkeptPaths(
  files: readonly HubFile[],
  family: KnownFamily | undefined,
  { device, modelFile: graph }: Places,
): string[] {
  try {
    return chooseFiles(files, { device, graph, config: {}, family }).files.map(({ path }) => path);
  } catch {
    return [];
  }
}
