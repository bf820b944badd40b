/** How the configured model becomes an engine. */
import type { Config } from '../config.ts';
import {
  defaultModel,
  defaultRuntime,
  type Engine,
  type EngineOptions,
  inspectModel,
  loadEngine,
  type ModelInspection,
} from '../engine.ts';
import { Refusal } from '../refusal.ts';
import type { FoundModel, ModelSource } from './source.ts';

/** What the health record calls the model that comes with the release. */
const EMBEDDED = 'embedded';

export interface LoadedEngine {
  readonly engine: Engine;
  readonly model: FoundModel;
  /** Where the model came from. */
  readonly source: ModelSource;
}

/**
 * The engine that `config` asks for, ready to answer.
 *
 * @throws Refusal when the model or the runtime cannot be loaded.
 */
export async function loadConfiguredEngine(config: Config): Promise<LoadedEngine> {
  try {
    const source = openSource(config);
    const model = await source.find(new AbortController().signal);
    return { engine: await loadEngine({ ...engineOptions(config), model: model.folder }), model, source };
  } catch (error) {
    throw refusal(error);
  }
}

/** Where the model of `config` comes from now: `before`, unless it names another. */
export function reopenSource(config: Config, before: ModelSource): ModelSource {
  return before.source === (config.model || EMBEDDED) ? before : openSource(config);
}

function openSource(config: Config): ModelSource {
  const folder = config.model || defaultModel();
  const source = config.model || EMBEDDED;
  const model = { folder, source, fallback: false, offline: false, isProven: true, notes: [] };
  const find = async () => model;
  return { source, find, refresh: find, accept: async () => {}, reject: async () => undefined, watch: () => {} };
}

/**
 * What the folder of `config` is, and what is wrong with it.
 *
 * @throws Refusal when the addon cannot be loaded.
 */
export async function inspectConfiguredModel(config: Config): Promise<ModelInspection> {
  try {
    return await inspectModel(engineOptions(config));
  } catch (error) {
    throw refusal(error);
  }
}

function refusal(error: unknown): unknown {
  return error instanceof Error ? new Refusal(error.message.replace(/\s*\n\s*/g, ' '), { cause: error }) : error;
}

function engineOptions(config: Config): EngineOptions {
  return { ...config, runtime: config.runtime || defaultRuntime(), model: config.model || defaultModel() };
}
