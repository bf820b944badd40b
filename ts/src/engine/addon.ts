/** The native addon: its place, and the engine that it makes. This is the only file that loads the addon. */
import { join } from 'node:path';
import {
  type BatchChunk,
  type BatchOptions,
  type CacheStats,
  type DecideOptions,
  type Engine,
  EngineError,
  type EngineOptions,
  type Failure,
  type ModelInfo,
  type ModelInspection,
  type QueueLoad,
  type Reply,
  type StateResult,
} from './contract.ts';
import type { NativeEngine, NativeQuestion, NativeReply } from './native.ts';
import { engineFolder, missingEngine, missingModel, modelFolder, requireHere, unsupportedPlatform } from './parts.ts';

type Addon = typeof import('./native.ts');

/** The names, by platform, of the ONNX Runtime library that is shipped next to the addon. */
const RUNTIMES: Partial<Record<NodeJS.Platform, string>> = {
  darwin: 'libonnxruntime.1.29.0.dylib',
  win32: 'onnxruntime.dll',
};

/**
 * Returns the path of the ONNX Runtime library that comes with the addon.
 *
 * @throws EngineError `runtime_failed` when there is none for this platform.
 */
export function defaultRuntime(): string {
  return join(installedEngine(), RUNTIMES[process.platform] ?? 'libonnxruntime.so.1');
}

/**
 * Returns the path of the embedded model's folder.
 *
 * @throws EngineError `bad_model` when it is not installed.
 */
export function defaultModel(): string {
  const folder = modelFolder();
  if (folder !== undefined) return folder;
  throw new EngineError({ code: 'bad_model', message: missingModel() });
}

function installedEngine(): string {
  const folder = engineFolder();
  if (folder !== undefined) return folder;
  throw new EngineError({ code: 'runtime_failed', message: missingEngine() });
}

/** The engines whose threads must have ended before the process tears its libraries down. */
const open = new Set<NativeEngine>();

function shutdownAll(): void {
  for (const native of open) native.shutdown();
  open.clear();
}

let addon: Addon | undefined;

/**
 * Returns the addon, loaded at its first use.
 *
 * @throws EngineError `runtime_failed` when this platform has no addon, or a broken one.
 */
function loadAddon(): Addon {
  if (addon) return addon;
  const path = join(installedEngine(), 'svc_engine.node');
  try {
    addon = requireHere(path) as Addon;
  } catch (error) {
    const cause = unsupportedPlatform() ?? (error instanceof Error ? error.message.split('\n', 1)[0] : String(error));
    throw new EngineError({ code: 'runtime_failed', message: `the engine cannot be loaded from ${path}`, cause });
  }
  process.on('exit', shutdownAll);
  return addon;
}

/** Returns every error code that the engine itself can report. */
export function engineErrorCodes(): string[] {
  return loadAddon().errorCodes();
}

/**
 * Returns each question in the body of a request with its canonical JSON,
 * `[type, instructions, [[name, description], …]]`: its sha256 is the key of the question's calibration.
 *
 * @throws EngineError when the body is no request that can be answered.
 */
export function canonicalQuestions(body: Buffer): readonly NativeQuestion[] {
  const { questions = [], failure } = loadAddon().canonicalQuestions(body);
  if (failure) throw new EngineError(failure);
  return questions;
}

/** Inspects the whole folder `model` and returns its description, without making a decision with it. */
export function inspectModel({ runtime, model }: Pick<EngineOptions, 'runtime' | 'model'>): Promise<ModelInspection> {
  return loadAddon().inspectModel(runtime, model);
}

/**
 * Returns an engine with its model loaded, ready to answer.
 *
 * @throws EngineError when the runtime, the model or the device is not usable.
 */
export async function loadEngine(options: EngineOptions): Promise<Engine> {
  const native = new (loadAddon().NativeEngine)();
  const loaded = native.load(options);
  open.add(native);
  const { failure } = await loaded;
  if (failure) {
    open.delete(native);
    throw new EngineError(failure);
  }
  return new AddonEngine(native);
}

/** The size of the pieces of a long document; a shorter one is sent whole. */
const DOCUMENT_CHUNK_BYTES = 2 ** 20;

function infoOf(native: NativeEngine): ModelInfo {
  const info = native.info();
  if (info === null) throw new EngineError({ code: 'closing', message: 'the engine is closing' });
  return info;
}

/** Returns a reply of the addon in one of the two shapes that it may have. */
function replyOf(reply: NativeReply): Reply {
  const result = resultOf(reply);
  if (result.failure) return result;
  if (reply.body) return { body: reply.body, ...result };
  throw new TypeError('the engine gave an answer without a body');
}

/** Returns the result of one state in one of the two shapes that it may have. */
function resultOf({ timing, counts, failure }: NativeReply): StateResult {
  if (failure) return { failure };
  if (timing && counts) return { timing, counts };
  throw new TypeError('the engine gave neither an answer nor a failure');
}

class AddonEngine implements Engine {
  readonly #native: NativeEngine;
  #info: ModelInfo;
  #ticket = 0;

  constructor(native: NativeEngine) {
    this.#native = native;
    this.#info = infoOf(native);
  }

  async swap(model: string): Promise<void> {
    const { failure } = await this.#native.swap(model);
    if (failure) throw new EngineError(failure);
    this.#info = infoOf(this.#native);
  }

  async decide(body: Buffer, options: DecideOptions = {}): Promise<Reply> {
    const { format = 'systemone', signal, elapsedMs = 0, timeoutMs } = options;
    if (signal?.aborted) return { failure: { code: 'cancelled', message: 'the caller has gone' } };
    this.#ticket += 1;
    const ticket = this.#ticket;
    const answer = this.#native.decide(ticket, body, { format, elapsedMs, timeoutMs });
    if (!signal) return replyOf(await answer);
    const cancel = () => this.#native.cancel(ticket);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return replyOf(await answer);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  async *batch(body: Buffer, options: BatchOptions): AsyncGenerator<BatchChunk, void> {
    const { lines = false, maxStates, signal, elapsedMs = 0 } = options;
    this.#ticket += 1;
    const batch = this.#native.batch(this.#ticket, body, { lines, maxStates, elapsedMs });
    const cancel = () => batch.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    if (signal?.aborted) cancel();
    try {
      for (;;) {
        const chunk = await batch.pull(lines ? 1 : DOCUMENT_CHUNK_BYTES);
        yield { ...chunk, results: chunk.results.map(resultOf) };
        if (chunk.timing || chunk.failure) return;
      }
    } finally {
      signal?.removeEventListener('abort', cancel);
      cancel();
    }
  }

  info(): ModelInfo {
    return this.#info;
  }

  refusal(): Failure | undefined {
    return this.#native.refusal() ?? undefined;
  }

  queue(): QueueLoad {
    return this.#native.queue();
  }

  cache(): CacheStats {
    return this.#native.cache();
  }

  async close(): Promise<void> {
    await this.#native.close();
    open.delete(this.#native);
  }

  shutdown(): void {
    this.#native.shutdown();
    open.delete(this.#native);
  }
}
