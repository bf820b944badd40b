/** Loads the configured model into an engine. */

import { inspectModel, loadEngine } from '../engine/addon.ts';
import type { Engine, ModelInspection } from '../engine/contract.ts';
import { tell } from '../log/tell.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { engineOptions } from './engine-options.ts';
import { fitMemory } from './memory.ts';
import { openModelSource } from './open-source.ts';
import type { FoundModel, ModelSource } from './source.ts';
import { reason } from './source-error.ts';

/** A model that is ready to answer. */
export interface LoadedEngine {
  readonly engine: Engine;
  readonly model: FoundModel;
  /** The source that the model came from, and that newer models will come from. */
  readonly source: ModelSource;
}

/**
 * Returns the engine that a server begins with. A model from elsewhere that cannot be loaded is replaced by the last
 * good one, and that one by the embedded one. When `signal` fires, nothing more is fetched, tried or loaded.
 *
 * @throws Refusal when no model can be loaded, or the settings name none.
 */
export async function startEngine(config: Config, signal: AbortSignal): Promise<LoadedEngine> {
  const source = await openModelSource(config);
  let model = await source.find(signal);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await load(config, source, model);
    } catch (error) {
      signal.throwIfAborted();
      await source.reject(model);
      const instead = await source.instead(model, reason(error));
      if (instead === undefined) throw withNotes(model.notes, error);
      model = instead;
    }
  }
}

/**
 * Returns the engine of the model that `config` names, and of no other: for a command, which ends with its work.
 *
 * @throws Refusal when there is no such model, or it cannot be loaded.
 */
export async function loadConfiguredEngine(config: Config): Promise<LoadedEngine> {
  const source = await openModelSource(config);
  return load(config, source, await findNow(source));
}

/**
 * Returns the description of the model folder of `config`, with its problems.
 *
 * @throws Refusal when the model cannot be fetched, or the addon cannot be loaded.
 */
export async function inspectConfiguredModel(config: Config): Promise<ModelInspection> {
  const { folder } = await findNow(await openModelSource(config));
  try {
    return await inspectModel(engineOptions(config, folder));
  } catch (error) {
    throw loadRefusal(error);
  }
}

async function load(config: Config, source: ModelSource, model: FoundModel): Promise<LoadedEngine> {
  const { stateCacheBytes, notes } = fitMemory(model.folder, config);
  const engine = await openEngine({ ...config, stateCacheBytes }, model);
  await source.accept(model);
  return { engine, model: { ...model, notes: [...model.notes, ...notes] }, source };
}

async function openEngine(config: Config, model: FoundModel): Promise<Engine> {
  try {
    return await loadEngine(engineOptions(config, model.folder));
  } catch (error) {
    throw loadRefusal(error);
  }
}

/** Returns the newest model, or the last good one where the newest cannot be obtained. */
async function findNow(source: ModelSource): Promise<FoundModel> {
  const never = new AbortController().signal;
  try {
    return await source.refresh(never);
  } catch (error) {
    const model = await source.find(never).catch(() => undefined);
    if (model === undefined || model.fallback || !(error instanceof Refusal)) throw error;
    tell(`${error.message}; the last good one is used`);
    return model;
  }
}

/** Returns `error` with the notes in front: those of a substitute say what was wrong with the model before it. */
function withNotes(notes: readonly string[], error: unknown): unknown {
  return notes.length === 0 ? error : new Refusal([...notes, reason(error)].join('; '), { cause: error });
}

function loadRefusal(error: unknown): unknown {
  return error instanceof Error ? new Refusal(error.message.replace(/\s*\n\s*/g, ' '), { cause: error }) : error;
}
