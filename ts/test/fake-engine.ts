/** An engine without a model: it records its calls, and a test decides what it answers and when. */
import type {
  BatchChunk,
  BatchOptions,
  CacheStats,
  CancelSignal,
  DecideOptions,
  Engine,
  Failure,
  Format,
  ModelInfo,
  QueueLoad,
  Reply,
} from '../src/engine/contract.ts';

export const MODEL_INFO: ModelInfo = {
  name: 'fake',
  version: '1.2.3',
  sha256: 'ab'.repeat(32),
  digest: 'd'.repeat(64),
  layout: 'marker',
  device: 'cpu',
  threads: 1,
  dir: '/models/fake',
  deviceNotes: [],
  exactness: 'exact',
};

/** The text of the usual answer. Its spelling would not survive parsing and serialising. */
export const ANSWER = '{"model": "svc","answers":{"10":{"p":1.0},"2":{}}}';

export const REPLY = {
  body: Buffer.from(ANSWER),
  timing: { encodeMs: 1.23, waitMs: 0, runMs: 5.67, totalMs: 7.1 },
  counts: {
    choice: 1,
    score: 2,
    noul: 3,
    inputTokens: 40,
    truncatedTokens: 0,
    confidences: { choice: [0.5], score: [0.1, 0.9], noul: [0.2, 0.3, 1] },
  },
} satisfies Reply;

/** One call of `decide`. */
export interface Call {
  readonly body: Buffer;
  readonly signal: CancelSignal;
  readonly elapsedMs: number;
  readonly timeoutMs: number | undefined;
  readonly format: Format | undefined;
}

/** One call of `batch`. */
export interface BatchCall extends BatchOptions {
  readonly body: Buffer;
}

export class FakeEngine implements Engine {
  readonly calls: Call[] = [];
  readonly batches: BatchCall[] = [];
  closes = 0;
  /** The failure of every request that arrives. */
  refuses: Failure | undefined;
  /** Returns the answer to a call. A test may replace it. */
  answer: (call: Call) => Reply | Promise<Reply> = () => REPLY;
  /** Returns the chunks that answer a batch. A test may replace it. */
  chunks: (call: BatchCall) => AsyncIterable<BatchChunk> | Iterable<BatchChunk> = () => [];
  /** The folders that were swapped in; `next` does each swap, and a test may replace it. */
  readonly swaps: string[] = [];
  next: (model: string) => Promise<Partial<ModelInfo>> = async (dir) => ({ dir });
  #info: ModelInfo;
  #onCall: (() => void) | undefined;

  constructor(info: Partial<ModelInfo> = {}) {
    this.#info = { ...MODEL_INFO, ...info };
  }

  refusal(): Failure | undefined {
    return this.refuses;
  }

  async decide(body: Buffer, options: DecideOptions = {}) {
    const { format, signal = new AbortController().signal, elapsedMs = -1, timeoutMs } = options;
    const call = { body, signal, elapsedMs, timeoutMs, format };
    this.calls.push(call);
    this.#onCall?.();
    return this.answer(call);
  }

  async *batch(body: Buffer, options: BatchOptions): AsyncGenerator<BatchChunk, void> {
    const call = { body, ...options };
    this.batches.push(call);
    yield* this.chunks(call);
  }

  /** Returns call number `n`, counted from 0, as soon as it is made. */
  async called(n = 0): Promise<Call> {
    for (;;) {
      const call = this.calls[n];
      if (call) return call;
      await new Promise<void>((resolve) => {
        this.#onCall = resolve;
      });
    }
  }

  /** Makes all calls wait, and returns the function that releases them. */
  hold(): () => void {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.answer = async () => {
      await released;
      return REPLY;
    };
    return release;
  }

  async swap(model: string): Promise<void> {
    this.swaps.push(model);
    this.#info = { ...this.#info, ...(await this.next(model)) };
  }

  info(): ModelInfo {
    return this.#info;
  }

  queue(): QueueLoad {
    return { running: 0, waiting: 0, newestFirst: false };
  }

  cache(): CacheStats {
    return { hits: 6, misses: 2, evictions: 1, entries: 1, bytes: 1.5 * 2 ** 20, limitBytes: 64 * 2 ** 20 };
  }

  async close(): Promise<void> {
    this.closes += 1;
  }

  shutdown(): void {}
}

/** Returns an answer that says when the caller's signal fires: what a real engine does with a caller who has gone. */
export function untilCancelled({ signal }: Call): Promise<Reply> {
  return new Promise((resolve) => {
    const cancelled = { failure: { code: 'cancelled', message: 'the caller has gone' } };
    signal.addEventListener('abort', () => resolve(cancelled), { once: true });
  });
}
