/**
 * The engine as the shell sees it. This is the only file that loads the native addon; everything else
 * takes the `Engine` interface, which tests implement with a fake.
 */
import { createRequire } from 'node:module';

/** Where the model comes from, what it runs on, and the limits that the engine itself enforces. */
export interface EngineOptions {
  /** Absolute path of the ONNX Runtime shared library. */
  readonly runtime: string;
  /** The model folder. */
  readonly model: string;
  readonly device: string;
  /** Intra-op threads; 0 takes the container's CPU limit, else the machine's cores. */
  readonly threads: number;
  readonly maxQuestions: number;
  /** Encoded tokens in one request, special ones included. */
  readonly maxTokens: number;
  /** What a text longer than the model's window gets: cut and counted, or an error. */
  readonly truncate: 'count' | 'error';
  /** Requests that may wait for the model. */
  readonly maxQueue: number;
  /** Bytes of the request bodies that may wait for the model. */
  readonly maxQueueBytes: number;
  readonly requestTimeoutMs: number;
  readonly maxRunMs: number;
  readonly stateCacheBytes: number;
}

/** What `/health` and the log say of the loaded model. */
export interface ModelInfo {
  readonly name: string;
  readonly version: string;
  /** Hex sha256 of the graph file. */
  readonly sha256: string;
  readonly layout: string;
  readonly device: string;
  readonly threads: number;
  /** Absolute path of the model folder. */
  readonly dir: string;
  /** Why devices that were tried before `device` were not taken, one line each. */
  readonly deviceNotes: readonly string[];
}

/** Durations in milliseconds. */
export interface Timing {
  readonly encodeMs: number;
  readonly waitMs: number;
  readonly runMs: number;
  readonly totalMs: number;
}

/** What one answered request was made of. */
export interface Counts {
  readonly choice: number;
  readonly score: number;
  readonly noul: number;
  readonly inputTokens: number;
  readonly truncatedTokens: number;
}

/** Why a request got no answer. `code` is one of `errors.ts`. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  /** Present when the caller should come again: seconds until the queue has room, at least 1. */
  readonly retryAfterSeconds?: number | undefined;
}

/** One decision: either `body`, `timing` and `counts`, or `failure`. */
export type Reply =
  | { readonly body: Buffer; readonly timing: Timing; readonly counts: Counts; readonly failure?: undefined }
  | { readonly failure: Failure };

/** How much work the engine holds. */
export interface QueueLoad {
  /** Requests on the model: 0 or 1. */
  readonly running: number;
  readonly waiting: number;
}

export interface DecideOptions {
  /** When it fires, waiting work is dropped and running work stops at its next model run. */
  readonly signal?: AbortSignal;
  /** Milliseconds already spent on the request, counted into `total`. */
  readonly elapsedMs?: number;
}

export interface Engine {
  /** Answers one decision request, given the bytes of its JSON body. Never rejects for a bad request. */
  decide(body: Buffer, options?: DecideOptions): Promise<Reply>;
  info(): ModelInfo;
  queue(): QueueLoad;
  /** Lets queued and running work finish, then frees the model. */
  close(): Promise<void>;
  /** Stops running work at once and joins the engine's threads; for `process.on('exit')`. */
  shutdown(): void;
}
