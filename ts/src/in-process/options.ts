/** The options of an engine in the caller's process, checked like the settings of a server. */
import { resolve } from 'node:path';
import { Check } from 'typebox/schema';
import { defaultModel, defaultRuntime } from '../engine/addon.ts';
import { type EngineOptions, requestsAtOnce } from '../engine/contract.ts';
import { type ConfigKey, settingSchema, wantedValue } from '../schemas/config.ts';

/**
 * The options of an engine: its model, its runtime and device, and its limits. Each option is the setting of the same
 * name in `svc.json` and has the same unit, range and default; `svc.json` and `SVC_*` variables are not read. Relative
 * paths start at the working folder.
 */
export type LocalEngineOptions = {
  readonly [Name in Exclude<keyof EngineOptions, 'parallel'>]?: EngineOptions[Name] | undefined;
} & { readonly parallel?: number | 'auto' | undefined };

const NAMES = {
  model: 'model',
  runtime: 'runtime',
  device: 'device',
  threads: 'threads',
  parallel: 'parallel',
  truncate: 'truncate',
  maxQuestions: 'max_questions',
  maxTokens: 'max_tokens',
  maxQueue: 'max_queue',
  maxQueueBytes: 'max_queue_bytes',
  requestTimeoutMs: 'request_timeout_ms',
  maxRunMs: 'max_run_ms',
  stateCacheBytes: 'state_cache_bytes',
  stateCachePrecision: 'state_cache_precision',
} as const satisfies Record<keyof EngineOptions, ConfigKey>;

/**
 * Returns the options with every default filled in and with absolute paths.
 *
 * @throws TypeError when an option is unknown or has a wrong value.
 */
export function localEngineOptions(options: LocalEngineOptions): EngineOptions {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined) throw new TypeError(`${unknown}: no such option`);
  const entries = Object.entries(NAMES).map(([name, key]) => {
    const value: unknown = options[name as keyof EngineOptions] ?? settingSchema(key).default;
    if (!Check(settingSchema(key), value)) throw new TypeError(`${name}: must be ${wantedValue(key)}`);
    return [name, value];
  });
  const { model, runtime, parallel, ...checked } = Object.fromEntries(entries);
  return {
    ...checked,
    parallel: requestsAtOnce(parallel),
    model: model === '' ? defaultModel() : resolve(model),
    runtime: runtime === '' ? defaultRuntime() : resolve(runtime),
  };
}
