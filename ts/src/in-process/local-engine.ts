/** The engine for programs that ask it directly, without a server. */
import { resolve } from 'node:path';
import { type Engine, loadEngine, type ModelInfo } from '../engine.ts';
import { DecisionError } from './decision-error.ts';
import { engineOptions, type LocalEngineOptions } from './options.ts';
import type { Decision, Questions } from './questions.ts';

/** What the questions are about, and the questions by their ids. */
export interface DecisionRequest<Asked extends Questions = Questions> {
  /** A string is its own text; of any other value, what `JSON.stringify` makes of it. */
  readonly state: NonNullable<unknown> | null;
  readonly questions: Asked;
}

export interface CallOptions {
  /** When it fires, the request leaves the queue, or its run ends at the next question, and the call rejects. */
  readonly signal?: AbortSignal | undefined;
}

/** A loaded model. Calls may overlap: they are answered one at a time, in their order. */
export interface LocalEngine {
  /** What is known of the model that answers calls now. */
  readonly model: ModelInfo;
  /**
   * The answers to all questions, typed by them.
   *
   * @throws DecisionError when there is none; the reason of `signal` when that has fired.
   */
  decide<const Asked extends Questions>(
    request: DecisionRequest<Asked>,
    options?: CallOptions,
  ): Promise<Decision<Asked>>;
  /**
   * The body of the answer to a request's body, both as JSON text exactly as over HTTP: for numbers whose spelling
   * counts, and for options that look like integers.
   *
   * @throws DecisionError when there is none; the reason of `signal` when that has fired.
   */
  decideJson(body: string | Uint8Array, options?: CallOptions): Promise<string>;
  /**
   * Loads the model of the folder `model`, then has it answer later calls, and resolves with what is known of it. Earlier
   * calls are answered by the model of their time, whose memory is free after the last of them.
   *
   * @throws EngineError when it cannot be loaded; nothing has changed then.
   */
  swap(model: string): Promise<ModelInfo>;
  /** Resolves when all calls are answered and the model's memory is free. Later calls are refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * An engine with its model loaded: the embedded one, or that of the folder `options.model`.
 *
 * @throws EngineError when the runtime, the model or the device cannot be used; TypeError when an option is wrong.
 */
export async function createEngine(options: LocalEngineOptions = {}): Promise<LocalEngine> {
  return new InProcessEngine(await loadEngine(engineOptions(options)));
}

class InProcessEngine implements LocalEngine {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  get model(): ModelInfo {
    return this.#engine.info();
  }

  async decide<const Asked extends Questions>(
    { state, questions }: DecisionRequest<Asked>,
    options: CallOptions = {},
  ): Promise<Decision<Asked>> {
    return JSON.parse(await this.decideJson(JSON.stringify({ state, questions }), options));
  }

  async decideJson(body: string | Uint8Array, { signal }: CallOptions = {}): Promise<string> {
    signal?.throwIfAborted();
    const bytes = typeof body === 'string' ? Buffer.from(body) : asBuffer(body);
    const reply = await this.#engine.decide(bytes, signal && { signal });
    if (reply.failure === undefined) return reply.body.toString('utf8');
    if (reply.failure.code === 'cancelled') signal?.throwIfAborted();
    throw new DecisionError(reply.failure);
  }

  async swap(model: string): Promise<ModelInfo> {
    await this.#engine.swap(resolve(model));
    return this.model;
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
