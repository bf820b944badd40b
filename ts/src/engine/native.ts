/** The types of the addon, `crates/engine/src/node/`; `scripts/addon-types.mjs` makes this file. */

/** A batch as JavaScript holds it. It is cancelled when JavaScript releases it. */
export declare class NativeBatch {
  /** Resolves with the next results, as soon as they have `min_bytes` or are the last. */
  pull(minBytes: number): Promise<NativeChunk>;
  /** Drops the batch, whose caller has gone. */
  cancel(): void;
}

/** One call of `batch`. */
export interface NativeBatchCall {
  /**
   * Whether the body has a line for each result, as soon as it is there; otherwise it is one
   * JSON document.
   */
  readonly lines: boolean;
  /** The most states that the batch may have. */
  readonly maxStates: number;
  /** The time that was already spent on the request. */
  readonly elapsedMs: number;
}

/** The statistics of the kept states. The counts are of chunks of states, since the start. */
export interface NativeCacheStats {
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
  readonly entries: number;
  readonly bytes: number;
  readonly limitBytes: number;
}

/** One call of `decide`. */
export interface NativeCall {
  readonly format: NativeFormat;
  /** The time that was already spent on the request. */
  readonly elapsedMs: number;
  /** How long the answer is of use, from the beginning of the request. */
  readonly timeoutMs?: number | undefined;
}

/** The questions of a request, or the reason why there are none. */
export interface NativeCanonical {
  readonly questions?: readonly NativeQuestion[] | undefined;
  readonly failure?: NativeFailure | undefined;
}

/** Some results of a batch, in the order of its states. */
export interface NativeChunk {
  /** The next piece of the response body. */
  readonly body: Buffer;
  readonly results: readonly NativeReply[];
  /**
   * Only in the last chunk: the durations of all states. The phases are sums over the states;
   * `total` is not.
   */
  readonly timing?: NativeTiming | undefined;
  /** Only in the last chunk: why the remaining states got no answer. */
  readonly failure?: NativeFailure | undefined;
}

/** The confidence of each answer, by question type, from 0 to 1. */
export interface NativeConfidences {
  readonly choice: readonly number[];
  readonly score: readonly number[];
  readonly noul: readonly number[];
}

/** The counts of one answered request. */
export interface NativeCounts {
  readonly choice: number;
  readonly score: number;
  readonly noul: number;
  readonly inputTokens: number;
  readonly truncatedTokens: number;
  readonly confidences: NativeConfidences;
}

/**
 * An engine as JavaScript holds it. Promises are settled by the engine's own threads; libuv's
 * thread pool is not used.
 */
export declare class NativeEngine {
  constructor();
  /** Loads the model; resolves with the failure, or with nothing. */
  load(options: NativeOptions): Promise<NativeReply>;
  /**
   * Loads another model folder and makes it answer the requests that arrive from then on;
   * resolves with the failure, or with nothing.
   */
  swap(model: string): Promise<NativeReply>;
  /** Returns the failure of a request that arrives now and need not be read, else nothing. */
  refusal(): NativeFailure | null;
  /** Answers a request; tickets count up. */
  decide(ticket: number, body: Buffer, options: NativeCall): Promise<NativeReply>;
  /** Starts a batch; tickets count up together with those of requests. */
  batch(ticket: number, body: Buffer, options: NativeBatchCall): NativeBatch;
  /** Drops a request whose caller has gone. */
  cancel(ticket: number): void;
  /** Returns the description of the model, or nothing before it is loaded. */
  info(): NativeInfo | null;
  /** Returns the numbers of running and waiting requests. */
  queue(): NativeLoad;
  /** Returns the statistics of the state cache, counted in chunks. */
  cache(): NativeCacheStats;
  /** Lets all admitted requests finish, then ends the engine's threads. */
  close(): Promise<void>;
  /** Ends everything now, and returns when the threads have ended. */
  shutdown(): void;
}

/** Whether the graph's 8-bit products are exact on this processor. */
export type NativeExactness = 'exact' | 'made exact' | 'cannot be';

/** The failure of a request that got no answer. `code` is one of `errors.ts`. */
export interface NativeFailure {
  readonly code: string;
  readonly message: string;
  /** Present when the caller should come again: the seconds until the queue has room, at least 1. */
  readonly retryAfterSeconds?: number | undefined;
  /**
   * The part of the request that is wrong, where that is known: a question's id, or the path of
   * a field.
   */
  readonly param?: string | undefined;
  /** The message of a library, only for the log; clients never see it. */
  readonly cause?: string | undefined;
}

/** A file that the model is made of. */
export interface NativeFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * The shape of a request and of its answer: that of `POST /v1/systemone`, or that of
 * `POST /v1/decisions`.
 */
export type NativeFormat = 'systemone' | 'decisions';

/** The facts about the loaded model that `/health` and the log show. */
export interface NativeInfo {
  readonly name: string;
  readonly version: string;
  /** The hex sha256 of the graph file. */
  readonly sha256: string;
  /** The hex sha256 over all files of the folder that the model is made of. */
  readonly digest: string;
  readonly layout: string;
  readonly device: string;
  readonly threads: number;
  /** The absolute path of the model folder. */
  readonly dir: string;
  /** The reasons why devices that were tried before `device` were not taken, one line each. */
  readonly deviceNotes: readonly string[];
  readonly exactness: NativeExactness;
  /**
   * A note about the exactness, in one line; absent where the graph is run as it is and is
   * exact.
   */
  readonly exactnessNote?: string | undefined;
}

/**
 * The description and the problems of a model folder. A fact that could not be found out is absent
 * or empty.
 */
export interface NativeInspection {
  readonly dir: string;
  readonly layout?: string | undefined;
  readonly name?: string | undefined;
  readonly version?: string | undefined;
  readonly files: readonly NativeFile[];
  readonly inputs: readonly NativeTensor[];
  readonly outputs: readonly NativeTensor[];
  /** The classes of a cross-encoder, and the roles that they are taken for. */
  readonly labels: readonly NativeLabel[];
  /** The number of token ids that the tokenizer has. */
  readonly vocabulary?: number | undefined;
  /** The tokens of a row, where all rows of the layout have one length. */
  readonly maxLen?: number | undefined;
  /**
   * The missing or wrong parts, one line each; an empty list does not mean that the model
   * answers.
   */
  readonly problems: readonly string[];
}

/** A class of a cross-encoder. */
export interface NativeLabel {
  readonly name: string;
  readonly role?: string | undefined;
}

/** The work that the engine holds. */
export interface NativeLoad {
  /** The requests on the model, at most `parallel`. */
  readonly running: number;
  readonly waiting: number;
  /** Whether the newest request goes first, since callers hang up before their turn. */
  readonly newestFirst: boolean;
}

/**
 * The options of an engine: its model, what the model runs on, and the limits that the engine
 * itself enforces.
 */
export interface NativeOptions {
  /** The absolute path of the ONNX Runtime library. */
  readonly runtime: string;
  /** The model folder. */
  readonly model: string;
  readonly device: string;
  /** The intra-op threads; 0 takes the container's CPU limit, else the machine's cores. */
  readonly threads: number;
  /** The most requests that may be on the model at once; 0 takes one for each thread. */
  readonly parallel: number;
  readonly maxQuestions: number;
  /** The most encoded tokens in one request, special ones included. */
  readonly maxTokens: number;
  readonly truncate: NativeTruncate;
  /** The most requests that may wait for the model. */
  readonly maxQueue: number;
  /** The most bytes of the request bodies that may wait for the model. */
  readonly maxQueueBytes: number;
  readonly requestTimeoutMs: number;
  readonly maxRunMs: number;
  readonly stateCacheBytes: number;
  readonly stateCachePrecision: NativePrecision;
}

/**
 * The precision of kept states: `fp16` keeps twice as many in the same bytes, and then rounds
 * every state.
 */
export type NativePrecision = 'fp32' | 'fp16';

/** A question where it is a key. */
export interface NativeQuestion {
  /** The canonical JSON; its sha256 is the key of the question's calibration. */
  readonly canonical: string;
  /** The type as which a model reads it that reads questions that ask the same alike. */
  readonly unifiedKind: string;
  /** For each outcome of the question its place among those that such a model reads. */
  readonly unifiedPlaces: readonly number[];
}

/**
 * The outcome of a request: either `body`, `timing` and `counts`, or `failure`. The outcome of a
 * load has at most a failure, and the result of one state of a batch no `body`.
 */
export interface NativeReply {
  readonly body?: Buffer | undefined;
  readonly timing?: NativeTiming | undefined;
  readonly counts?: NativeCounts | undefined;
  readonly failure?: NativeFailure | undefined;
}

/** An input or output of a graph. */
export interface NativeTensor {
  readonly name: string;
  /** The type of its elements, such as `int64`. */
  readonly kind: string;
  /** The dimensions: numbers, the graph's names for them, or `?`. */
  readonly shape: readonly string[];
}

/** The durations of the phases of one request, in milliseconds. */
export interface NativeTiming {
  readonly encodeMs: number;
  readonly waitMs: number;
  readonly runMs: number;
  readonly totalMs: number;
}

/** The treatment of a text that is longer than the model's window. */
export type NativeTruncate = 'count' | 'error';

/** Returns the questions in the body of a request, where they are keys. */
export declare function canonicalQuestions(body: Buffer): NativeCanonical;

/** Returns every error code that the engine can report. */
export declare function errorCodes(): string[];

/** Resolves with the contents and the problems of a model folder. */
export declare function inspectModel(runtime: string, model: string): Promise<NativeInspection>;
