/** The models from elsewhere that are kept on this disk: what they are, and their removal. */
import { join } from 'node:path';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { type KeptModel, type KeptName, ModelCache } from './cache.ts';
import { type Family, familyOf, type KnownFamily, knownFamily } from './family.ts';
import { CARD_FILE, licenceIn } from './hub/card.ts';
import { chooseFiles } from './hub/choice.ts';
import { CachedRepository } from './hub/hub-cache.ts';
import type { HubFile } from './hub/listing.ts';
import { atCommit, type HubName, isHubName, namesRevision, parseHubName, pathInRepository } from './hub/name.ts';
import { publicSource } from './location.ts';

/** A kept model under one of its names, as a person wants to know it. */
export interface ModelSummary extends Omit<KeptModel, 'paths' | 'names'> {
  /** The place that the model was fetched from, and its latest revision there. */
  readonly source?: string;
  readonly revision?: string;
  readonly family?: Family;
  /** The licence that the card of the model names. */
  readonly licence?: string;
  /** The folder of its files in the hub's cache. */
  readonly snapshot?: string;
}

/** The models that were removed. */
export interface Removed {
  /** The bytes that the cache of models had them in; 0 where other names keep their models. */
  readonly bytes: number;
  /** The other names of models that stay for those. */
  readonly keptBy: readonly string[];
}

type Places = Pick<Config, 'modelCache' | 'modelCacheBytes' | 'hub' | 'device' | 'modelFile'>;

/**
 * Returns all models from elsewhere, the one that was used last in front. A model that was fetched by several names is
 * there once for each.
 */
export async function keptModels(config: Places): Promise<ModelSummary[]> {
  const kept = await cacheOf(config).kept();
  const named = kept.flatMap((model) =>
    model.names.length === 0
      ? [summary(model, undefined, config)]
      : model.names.map((name) => summary(model, name, config)),
  );
  return Promise.all(named);
}

/** Returns the name of a kept model with its revision, as `/health` shows it. */
export function pinnedSource({ source, revision }: Pick<ModelSummary, 'source' | 'revision'>): string | undefined {
  return source !== undefined && revision !== undefined && isHubName(source)
    ? atCommit(parseHubName(source), revision)
    : source;
}

/** A kept model, and the revisions of one of its names that are meant. */
interface Found {
  readonly model: KeptModel;
  readonly name: KeptName;
  readonly revisions: readonly string[];
}

/**
 * Removes a model and its files in the hub's cache. A name without a revision stands for all revisions, a commit for
 * itself. A model that was also fetched by other names is kept for those.
 *
 * @param model - The model as `model` in the settings names it.
 * @throws Refusal when there is none, or a running process uses it.
 */
export async function removeModels(model: string, config: Places): Promise<Removed> {
  const [cache, source] = [cacheOf(config), publicSource(model)];
  const name = isHubName(model) ? parseHubName(model) : undefined;
  const all = await cache.kept();
  const found = all.flatMap((kept) => meantBy(source, name, kept));
  if (found.some((one) => one.model.isInUse)) throw new Refusal(`${source}: a running server uses it`);
  const rest = all.flatMap((kept) => restOf(kept, found));
  let bytes = 0;
  for (const kept of new Set(found.map((one) => one.model))) {
    if (rest.some(({ model: { sha256 } }) => sha256 === kept.sha256)) continue;
    if (!(await cache.discard(kept.sha256)))
      throw new Refusal(`${source}: cannot be removed from ${config.modelCache}`);
    bytes += kept.bytes;
  }
  await cache.forget(source);
  for (const one of found) await forget(cache, one);
  const isInHub = name !== undefined && (await removeFromHub(name, { found, rest }, config));
  if (found.length === 0 && !isInHub) throw new Refusal(`${source}: is not kept here; see svc model list`);
  const removed = new Set(found.map(({ model: { sha256 } }) => sha256));
  return { bytes, keptBy: rest.filter((one) => removed.has(one.model.sha256)).map((one) => one.name.source) };
}

function cacheOf({ modelCache: folder, modelCacheBytes: maxBytes }: Places): ModelCache {
  return new ModelCache({ folder, maxBytes });
}

/** Returns the names of a kept model that are meant by a source. */
function meantBy(source: string, wanted: HubName | undefined, model: KeptModel): Found[] {
  return model.names.flatMap((name) => {
    if (name.source === source) return [{ model, name, revisions: name.revisions }];
    if (wanted === undefined || !isHubName(name.source)) return [];
    const { repository, folder } = parseHubName(name.source);
    if (repository !== wanted.repository || folder !== wanted.folder) return [];
    const isAny = !namesRevision(source);
    const revisions = name.revisions.filter((revision) => isAny || revision === wanted.revision);
    return revisions.length > 0 ? [{ model, name, revisions }] : [];
  });
}

/** Returns the names of a kept model that stay, with the revisions that are left of each. */
function restOf(model: KeptModel, found: readonly Found[]): Found[] {
  return model.names.flatMap((name) => {
    const meant = found.find((one) => one.model === model && one.name === name);
    if (meant === undefined) return [{ model, name, revisions: name.revisions }];
    const revisions = name.revisions.filter((revision) => !meant.revisions.includes(revision));
    return revisions.length > 0 ? [{ model, name, revisions }] : [];
  });
}

/** Takes a name, or some of its revisions, from a kept model, which may be gone. */
async function forget(cache: ModelCache, { model: { sha256 }, name, revisions }: Found): Promise<void> {
  const left = name.revisions.filter((revision) => !revisions.includes(revision));
  if (left.length > 0) await cache.setName(sha256, { source: name.source, revisions: left }).catch(() => {});
  else await cache.removeName(sha256, name.source);
  // A start must not begin with a model that was removed.
  await cache.forget(name.source, { sha256, revisions });
}

async function summary(
  { paths: _, names: __, ...model }: KeptModel,
  name: KeptName | undefined,
  config: Places,
): Promise<ModelSummary> {
  const [source, revision] = [name?.source, name?.revisions[0]];
  const snapshot = snapshotOf({ source, revision }, config);
  const family = await familyOf(model.folder);
  const licence = await licenceOf(snapshot);
  return {
    ...model,
    ...(source !== undefined && { source }),
    ...(revision !== undefined && { revision }),
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
  { source, revision }: { readonly source: string | undefined; readonly revision: string | undefined },
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

/** Removes the files of models from the hub's cache, except those of names that stay; returns whether there were any. */
async function removeFromHub(
  name: HubName,
  { found, rest }: { readonly found: readonly Found[]; readonly rest: readonly Found[] },
  config: Places,
): Promise<boolean> {
  const repository = new CachedRepository(config.hub.cache, name.repository);
  const now = await repository.commitOf(name.revision);
  const commits = new Set([...found.flatMap(({ revisions }) => revisions), ...(now === undefined ? [] : [now])]);
  const staying = rest.filter(
    (one) => isHubName(one.name.source) && parseHubName(one.name.source).repository === name.repository,
  );
  let isRemoved = false;
  for (const commit of commits) {
    const isOf = ({ revisions }: Found) => revisions.includes(commit);
    const kept = found.filter(isOf).flatMap(({ model }) => model.paths);
    const files = await repository.filesAt(commit, name.folder);
    const family = await knownFamily(join(repository.snapshot(commit), ...name.folder.split('/')));
    const paths = new Set(
      [...kept, ...unkeptPaths(files, family, config), CARD_FILE].map((path) => pathInRepository(name, path)),
    );
    paths.add(CARD_FILE);
    for (const path of staying.filter(isOf).flatMap(pathsOf)) paths.delete(path);
    const before = await repository.filesAt(commit);
    isRemoved ||= before.some(({ path }) => paths.has(path));
    await repository.remove(commit, [...paths]);
  }
  return isRemoved;
}

/** Returns the paths, in its repository, of a model and its cards. */
function pathsOf({ model, name }: Found): string[] {
  const hubName = parseHubName(name.source);
  return [CARD_FILE, ...[...model.paths, CARD_FILE].map((path) => pathInRepository(hubName, path))];
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
