/** Turns the settings into the options of an engine. */

import { defaultRuntime } from '../engine/addon.ts';
import type { EngineOptions } from '../engine/contract.ts';
import type { Config } from '../settings/config.ts';

/** Returns the options of an engine on the model folder `model`. */
export function engineOptions(config: Config, model: string): EngineOptions {
  return { ...config, runtime: config.runtime || defaultRuntime(), model };
}
