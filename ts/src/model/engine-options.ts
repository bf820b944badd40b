/** Turns the settings into the options of an engine. */

import { defaultRuntime } from '../engine/addon.ts';
import { type EngineOptions, requestsAtOnce } from '../engine/contract.ts';
import type { Config } from '../settings/config.ts';

/** Returns the options of an engine on the model folder `model`; no other setting crosses to the engine. */
export function engineOptions(config: Config, model: string): EngineOptions {
  return {
    runtime: config.runtime || defaultRuntime(),
    model,
    device: config.device,
    threads: config.threads,
    parallel: requestsAtOnce(config.parallel),
    maxQuestions: config.maxQuestions,
    maxTokens: config.maxTokens,
    truncate: config.truncate,
    maxQueue: config.maxQueue,
    maxQueueBytes: config.maxQueueBytes,
    requestTimeoutMs: config.requestTimeoutMs,
    maxRunMs: config.maxRunMs,
    stateCacheBytes: config.stateCacheBytes,
    stateCachePrecision: config.stateCachePrecision,
  };
}
