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

/** What the health record calls the model that comes with the release. */
const EMBEDDED = 'embedded';

export interface LoadedEngine {
  readonly engine: Engine;
  /** Where the model came from. */
  readonly source: string;
}

/**
 * The engine that `config` asks for, ready to answer.
 *
 * @throws Refusal when the model or the runtime cannot be loaded.
 */
export async function loadConfiguredEngine(config: Config): Promise<LoadedEngine> {
  try {
    return { engine: await loadEngine(engineOptions(config)), source: config.model || EMBEDDED };
  } catch (error) {
    throw refusal(error);
  }
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
