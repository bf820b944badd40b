/** The engine for programs that call it directly, without a server. */
import { resolve } from 'node:path';
import { loadEngine } from '../engine/addon.ts';
import type { Engine, ModelInfo } from '../engine/contract.ts';
import { DecisionError } from './decision-error.ts';
import { type LocalEngineOptions, localEngineOptions } from './options.ts';
import type { Decision, Questions } from './questions.ts';

/** A decision request: a state, and the questions about it by their ids. */
export interface DecisionRequest<Asked extends Questions = Questions> {
  /**
   * The state that the questions are about. A string is its own text; any other value is the text that `JSON.stringify`
   * makes of it.
   */
  readonly state: NonNullable<unknown> | null;
  readonly questions: Asked;
}

export interface CallOptions {
  /**
   * The signal that cancels the call, none by default. When it fires, the request leaves the queue, or its run ends at
   * the next question, and the call rejects with the signal's reason.
   */
  readonly signal?: AbortSignal | undefined;
}

/** An engine with a loaded model. Calls may overlap: they are answered one at a time, in their order. */
export interface LocalEngine {
  /** The name, version and properties of the model that answers calls now. */
  readonly model: ModelInfo;
  /**
   * Returns the answers to all questions of the request, with types that follow from the questions.
   *
   * @throws DecisionError when there is no answer; the reason of `signal` when that signal has fired.
   */
  decide<const Asked extends Questions>(
    request: DecisionRequest<Asked>,
    options?: CallOptions,
  ): Promise<Decision<Asked>>;
  /**
   * Returns the body of the answer to a request's body, both as JSON text exactly as over HTTP: for numbers whose
   * spelling matters, and for options that look like integers.
   *
   * @throws DecisionError when there is no answer; the reason of `signal` when that signal has fired.
   */
  decideJson(body: string | Uint8Array, options?: CallOptions): Promise<string>;
  /**
   * Loads the model from the folder `model`, uses it for all later calls, and resolves with its `ModelInfo`. Earlier
   * calls are still answered by the previous model, whose memory is freed after the last of them.
   *
   * @throws EngineError when the model cannot be loaded; the previous model then stays in use.
   */
  swap(model: string): Promise<ModelInfo>;
  /** Resolves when all calls are answered and the model's memory is freed. Later calls are refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Returns an engine with its model loaded: the embedded model by default, or the one in the folder `options.model`.
 *
 * @throws EngineError when the runtime, the model or the device cannot be used; TypeError when an option is wrong.
 */
export async function createEngine(options: LocalEngineOptions = {}): Promise<LocalEngine> {
  return new InProcessEngine(await loadEngine(localEngineOptions(options)));
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
