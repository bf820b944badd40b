/** The options of an engine in the caller's process, checked like the settings of a server. */
import { resolve } from 'node:path';
import { Check } from 'typebox/schema';
import { defaultModel, defaultRuntime } from '../engine/addon.ts';
import { type EngineOptions, requestsAtOnce } from '../engine/contract.ts';
import { type ConfigKey, settingSchema, wantedValue } from '../schemas/config.ts';
import { nearestName } from '../schemas/nearest.ts';
import { modelPath } from './arguments.ts';

/**
 * The options of an engine: its model, its runtime and device, and its limits. Each option is the setting of the same
 * name in `svc.json`; `svc.json` and `SVC_*` variables are not read. Relative paths start at the working folder.
 */
export interface LocalEngineOptions {
  /**
   * The model folder. An archive or an address, which the server takes, is a `TypeError`. Default: the embedded model.
   */
  readonly model?: string | undefined;
  /**
   * The ONNX Runtime library, version 1.23 or newer: another build may know other devices. Default: the library that
   * came along.
   */
  readonly runtime?: string | undefined;
  /**
   * The compute device: `auto`, `cpu`, `gpu`, `cuda`, `coreml` or `directml`. `auto` takes a GPU only if it answers as
   * the processor does; any other device that cannot be used is an `EngineError`. Default: `auto`.
   */
  readonly device?: string | undefined;
  /**
   * The intra-op threads of one model run, 0 to 256; 0 takes the CPU limit of the container, else the cores of the
   * machine. Default: 0.
   */
  readonly threads?: number | undefined;
  /**
   * The most calls on the model at once, 1 to 256, or `auto` for one for each thread. More than one share the threads: that answers
   * more short calls a second, and each of them later. Default: 1.
   */
  readonly parallel?: number | 'auto' | undefined;
  /**
   * The treatment of a text that is longer than the model's window: `count` cuts it and counts the cut tokens in
   * `usage.truncated_tokens`, `error` refuses the call with status 413. Default: `count`.
   */
  readonly truncate?: 'count' | 'error' | undefined;
  /**
   * The most questions in one call, 1 to 1,000,000; more are refused with status 413. One call holds the model for all
   * of them. Default: 1,024.
   */
  readonly maxQuestions?: number | undefined;
  /**
   * The most encoded tokens of one call, special ones included, 1 to 2,147,483,647; more are refused with status 413.
   * The time on the model and the memory grow with it. Default: 131,072.
   */
  readonly maxTokens?: number | undefined;
  /**
   * The most calls that may wait for the model, 1 to 1,000,000; more are refused with status 503. Default: 512.
   */
  readonly maxQueue?: number | undefined;
  /**
   * The most bytes of the requests that may wait for the model, 1 to 1,099,511,627,776; more are refused with status
   * 503. Default: 67,108,864 (64 MiB).
   */
  readonly maxQueueBytes?: number | undefined;
  /**
   * The longest wait for the model in milliseconds, 1 to 2,147,483,647; a longer one ends with status 503. Default:
   * 60,000.
   */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * The longest time of one call for encoding and on the model in milliseconds, 1 to 2,147,483,647, checked between
   * its runs. A longer call ends with status 503, or is refused with 413 if it is known beforehand. Default: 60,000.
   */
  readonly maxRunMs?: number | undefined;
  /**
   * The bytes of states that are kept for the next question about them, 0 to 1,099,511,627,776; 0 keeps none. Default:
   * 67,108,864 (64 MiB).
   */
  readonly stateCacheBytes?: number | undefined;
  /**
   * The precision of kept states: `fp16` takes half of the bytes of `fp32`, and may move a probability a little.
   * Default: `fp32`.
   */
  readonly stateCachePrecision?: 'fp32' | 'fp16' | undefined;
}

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
} as const satisfies Record<keyof EngineOptions & keyof LocalEngineOptions, ConfigKey>;

/**
 * Returns the options with every default filled in and with absolute paths.
 *
 * @throws TypeError when an option is unknown or has a wrong value, or `options` is no object.
 */
export function localEngineOptions(options: LocalEngineOptions): EngineOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError("options: must be an object, such as { model: 'folder', threads: 2 }");
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(NAMES, name));
  if (unknown !== undefined) throw new TypeError(`${unknown}: no such option${meantOption(unknown)}`);
  const entries = Object.entries(NAMES).map(([name, key]) => {
    const value: unknown = options[name as keyof LocalEngineOptions] ?? settingSchema(key).default;
    if (!Check(settingSchema(key), value)) throw new TypeError(`${name}: must be ${wantedValue(key)}`);
    return [name, value];
  });
  const { model, runtime, parallel, ...checked } = Object.fromEntries(entries);
  return {
    ...checked,
    parallel: requestsAtOnce(parallel),
    model: model === '' ? defaultModel() : modelPath(model),
    runtime: runtime === '' ? defaultRuntime() : resolve(runtime),
  };
}

function meantOption(name: string): string {
  const nearest = nearestName(name, Object.keys(NAMES));
  return nearest === undefined ? '' : `; is ${nearest} meant?`;
}
