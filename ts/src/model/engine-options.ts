/** Turns the settings into the options of an engine. */
import type { Config } from '../config.ts';
import { defaultRuntime, type EngineOptions } from '../engine.ts';

/** Returns the options of an engine on the model folder `model`. */
export function engineOptions(config: Config, model: string): EngineOptions {
  return { ...config, runtime: config.runtime || defaultRuntime(), model };
}
