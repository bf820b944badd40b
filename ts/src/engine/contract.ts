/**
 * The engine as the shell sees it: an interface, which tests implement with a fake. It takes and gives the types of the
 * addon.
 */
import type {
  NativeCacheStats,
  NativeChunk,
  NativeCounts,
  NativeFailure,
  NativeFormat,
  NativeInfo,
  NativeLoad,
  NativeTiming,
} from './native.ts';

export type {
  NativeCacheStats as CacheStats,
  NativeCounts as Counts,
  NativeFailure as Failure,
  NativeFormat as Format,
  NativeInfo as ModelInfo,
  NativeInspection as ModelInspection,
  NativeLoad as QueueLoad,
  NativeOptions as EngineOptions,
  NativeTensor as GraphTensor,
  NativeTiming as Timing,
} from './native.ts';

/** Returns a number of requests at once as the addon takes it: 0 means one for each thread. */
export function requestsAtOnce(parallel: number | 'auto'): number {
  return parallel === 'auto' ? 0 : parallel;
}

/** One decision: either `body`, `timing` and `counts`, or `failure`. */
export type Reply =
  | {
      readonly body: Buffer;
      readonly timing: NativeTiming;
      readonly counts: NativeCounts;
      readonly failure?: undefined;
    }
  | { readonly failure: NativeFailure };

/** The result of one state of a batch. */
export type StateResult =
  | { readonly timing: NativeTiming; readonly counts: NativeCounts; readonly failure?: undefined }
  | { readonly failure: NativeFailure };

/** Some results of a batch, in the order of its states. */
export interface BatchChunk extends Omit<NativeChunk, 'results'> {
  readonly results: readonly StateResult[];
}

/** The part of an `AbortSignal` that the engine listens to; an object with only this part costs a tenth to make. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options: { once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface DecideOptions {
  /** The format; `systemone` when it is left out. */
  readonly format?: NativeFormat | undefined;
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
  /**
   * Returns the failure of a decision request that arrives now and need not be read, because the queue is full, or
   * because newer requests would push it out at once; else undefined.
   */
  refusal(): NativeFailure | undefined;
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
  info(): NativeInfo;
  queue(): NativeLoad;
  cache(): NativeCacheStats;
  /** Lets queued and running work finish, then frees the model. */
  close(): Promise<void>;
  /** Stops running work at once and joins the engine's threads; for `process.on('exit')`. */
  shutdown(): void;
}

/** An engine that could not be loaded: `code` is one of `errors.ts`, the message one line. */
export class EngineError extends Error {
  readonly code: string;

  constructor({ code, message, cause }: NativeFailure) {
    super(cause === undefined ? message : `${message}: ${cause}`);
    this.name = 'EngineError';
    this.code = code;
  }
}
