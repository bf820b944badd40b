/**
 * The engine as the shell sees it. This is the only file that loads the native addon; everything else
 * takes the `Engine` interface, which tests implement with a fake.
 */
import { join } from 'node:path';
import { engineFolder, missingEngine, missingModel, modelFolder, requireHere, unsupportedPlatform } from './parts.ts';

/** The options of an engine: its model, what the model runs on, and the limits that the engine itself enforces. */
export interface EngineOptions {
  /** Absolute path of the ONNX Runtime shared library. */
  readonly runtime: string;
  /** The model folder. */
  readonly model: string;
  readonly device: string;
  /** Intra-op threads; 0 takes the container's CPU limit, else the machine's cores. */
  readonly threads: number;
  readonly maxQuestions: number;
  /** The most encoded tokens in one request, special ones included. */
  readonly maxTokens: number;
  /**
   * The treatment of a text longer than the model's window: it is cut and its cut tokens are counted, or it is an
   * error.
   */
  readonly truncate: 'count' | 'error';
  /** The most requests that may wait for the model. */
  readonly maxQueue: number;
  /** The most bytes of the request bodies that may wait for the model. */
  readonly maxQueueBytes: number;
  readonly requestTimeoutMs: number;
  readonly maxRunMs: number;
  readonly stateCacheBytes: number;
  /** The precision of kept states: `fp16` keeps twice as many in the same bytes, and then rounds every state. */
  readonly stateCachePrecision: 'fp32' | 'fp16';
}

/** The facts about the loaded model that `/health` and the log show. */
export interface ModelInfo {
  readonly name: string;
  readonly version: string;
  /** Hex sha256 of the graph file. */
  readonly sha256: string;
  /** Hex sha256 over all files of the folder that the model is made of. */
  readonly digest: string;
  readonly layout: string;
  readonly device: string;
  readonly threads: number;
  /** Absolute path of the model folder. */
  readonly dir: string;
  /** The reasons why devices that were tried before `device` were not taken, one line each. */
  readonly deviceNotes: readonly string[];
  /**
   * Whether the graph's 8-bit products are exact on this processor: as they are in the file, by unsigned weights in
   * place of signed ones, or not all of them.
   */
  readonly exactness: 'exact' | 'made exact' | 'cannot be';
  /** A note about the exactness, in one line; absent where the graph is run as it is and is exact. */
  readonly exactnessNote?: string | undefined;
}

/** The durations of the phases of one request, in milliseconds. */
export interface Timing {
  readonly encodeMs: number;
  readonly waitMs: number;
  readonly runMs: number;
  readonly totalMs: number;
}

/** The counts of one answered request. */
export interface Counts {
  readonly choice: number;
  readonly score: number;
  readonly noul: number;
  readonly inputTokens: number;
  readonly truncatedTokens: number;
  /** The confidence of each answer, by question type, from 0 to 1. */
  readonly confidences: Readonly<Record<'choice' | 'score' | 'noul', readonly number[]>>;
}

/** The failure of a request that got no answer. `code` is one of `errors.ts`. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  /** Present when the caller should come again: seconds until the queue has room, at least 1. */
  readonly retryAfterSeconds?: number | undefined;
  /** The part of the request that is wrong, where that is known: a question's id, or the path of a field. */
  readonly param?: string | undefined;
  /** The message of a library, only for the log. */
  readonly cause?: string | undefined;
}

/** One decision: either `body`, `timing` and `counts`, or `failure`. */
export type Reply =
  | { readonly body: Buffer; readonly timing: Timing; readonly counts: Counts; readonly failure?: undefined }
  | { readonly failure: Failure };

/** The result of one state of a batch. */
export type StateResult =
  | { readonly timing: Timing; readonly counts: Counts; readonly failure?: undefined }
  | { readonly failure: Failure };

/** Some results of a batch, in the order of its states. */
export interface BatchChunk {
  /** The next piece of the response body. */
  readonly body: Buffer;
  readonly results: readonly StateResult[];
  /** Only in the last chunk: the durations of all states. The phases are sums over the states; `total` is not. */
  readonly timing?: Timing | undefined;
  /** Only in the last chunk: why the remaining states got no answer. */
  readonly failure?: Failure | undefined;
}

/** The work that the engine holds. */
export interface QueueLoad {
  /** Requests on the model: 0 or 1. */
  readonly running: number;
  readonly waiting: number;
  /** Whether the newest request goes first, since callers hang up before their turn. */
  readonly newestFirst: boolean;
}

/** The statistics of the kept states. The counts are of chunks of states, since the start. */
export interface CacheStats {
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
  readonly entries: number;
  readonly bytes: number;
  readonly limitBytes: number;
}

/** The shape of a request and of its answer: that of `POST /v1/systemone`, or that of `POST /v1/decisions`. */
export type Format = 'systemone' | 'decisions';

/** The part of an `AbortSignal` that the engine listens to; an object with only this part costs a tenth to make. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options: { once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** An input or output of a graph. */
export interface GraphTensor {
  readonly name: string;
  /** The type of its elements, such as `int64`. */
  readonly kind: string;
  /** The dimensions: numbers, the graph's names for them, or `?`. */
  readonly shape: readonly string[];
}

/** The description and the problems of a model folder. A fact that could not be found out is absent or empty. */
export interface ModelInspection {
  readonly dir: string;
  readonly layout?: string;
  readonly name?: string;
  readonly version?: string;
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  /** The classes of a cross-encoder, and the roles that they are taken for. */
  readonly labels: readonly { readonly name: string; readonly role?: string }[];
  /** The number of token ids that the tokenizer has. */
  readonly vocabulary?: number;
  /** The tokens of a row, where all rows of the layout have one length. */
  readonly maxLen?: number;
  /** The missing or wrong parts, one line each; an empty list does not mean that the model answers. */
  readonly problems: readonly string[];
}

export interface DecideOptions {
  /** The format; `systemone` when it is left out. */
  readonly format?: Format | undefined;
  /** The signal that ends the request: waiting work is dropped, and running work stops at its next model run. */
  readonly signal?: CancelSignal;
  /** Milliseconds already spent on the request, counted into `total`. */
  readonly elapsedMs?: number;
  /**
   * How long the answer is of use, in milliseconds from the beginning of the request; `requestTimeoutMs` also holds.
   */
  readonly timeoutMs?: number | undefined;
}

export interface BatchOptions extends Pick<DecideOptions, 'signal' | 'elapsedMs'> {
  /** Whether the body has a line for each result, as soon as it is there; otherwise it is one JSON document. */
  readonly lines?: boolean;
  /** The most states that the batch may have. */
  readonly maxStates: number;
}

export interface Engine {
  /**
   * Answers one set of questions about many states, given the bytes of the JSON body. The generator gives at least one
   * chunk, and makes no more results than are taken; leaving its loop ends the batch. Never rejects for a bad request.
   */
  batch(body: Buffer, options: BatchOptions): AsyncGenerator<BatchChunk, void>;
  /** Answers one decision request, given the bytes of its JSON body. Never rejects for a bad request. */
  decide(body: Buffer, options?: DecideOptions): Promise<Reply>;
  /**
   * Loads the model of the folder `model` while the current one goes on answering, then lets the new model answer later
   * requests. Earlier requests, whole batches included, are answered by the model that they came to, which is freed
   * after the last of them.
   *
   * @throws EngineError when the new model cannot be loaded; nothing has changed then.
   */
  swap(model: string): Promise<void>;
  info(): ModelInfo;
  queue(): QueueLoad;
  cache(): CacheStats;
  /** Lets queued and running work finish, then frees the model. */
  close(): Promise<void>;
  /** Stops running work at once and joins the engine's threads; for `process.on('exit')`. */
  shutdown(): void;
}

interface NativeCall {
  readonly format: Format;
  readonly elapsedMs: number;
  readonly timeoutMs?: number | undefined;
}

/** The addon's class, `crates/engine/src/node/`. Tickets count up; they are the order of arrival. */
interface NativeEngine {
  load(options: EngineOptions): Promise<{ readonly failure?: Failure }>;
  swap(model: string): Promise<{ readonly failure?: Failure }>;
  decide(ticket: number, body: Buffer, call: NativeCall): Promise<Reply>;
  batch(ticket: number, body: Buffer, call: Required<Omit<BatchOptions, 'signal'>>): NativeBatch;
  cancel(ticket: number): void;
  info(): ModelInfo | null;
  queue(): QueueLoad;
  cache(): CacheStats;
  close(): Promise<void>;
  shutdown(): void;
}

interface NativeBatch {
  pull(minBytes: number): Promise<BatchChunk>;
  cancel(): void;
}

interface Addon {
  readonly NativeEngine: new () => NativeEngine;
  inspectModel(runtime: string, model: string): Promise<ModelInspection>;
  canonicalQuestions(body: Buffer): { readonly questions?: string[]; readonly failure?: Failure };
  errorCodes(): string[];
}

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

/** An engine that could not be loaded: `code` is one of `errors.ts`, the message one line. */
export class EngineError extends Error {
  readonly code: string;

  constructor({ code, message, cause }: Failure) {
    super(cause === undefined ? message : `${message}: ${cause}`);
    this.name = 'EngineError';
    this.code = code;
  }
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
 * Returns the canonical JSON of each question in the body of a request,
 * `[type, instructions, [[name, description], …]]`: its sha256 is the key of the question's calibration.
 *
 * @throws EngineError when the body is no request that can be answered.
 */
export function canonicalQuestions(body: Buffer): string[] {
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
  open.add(native);
  const { failure } = await native.load(options);
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
    if (!signal) return answer;
    const cancel = () => this.#native.cancel(ticket);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await answer;
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
        yield chunk;
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
