/** The engine for programs that call it directly, without a server. */
import { loadEngine } from '../engine/addon.ts';
import { type Engine, EngineError, type EngineOptions, type ModelInfo } from '../engine/contract.ts';
import { hasReferences, tryReferences } from '../model/references.ts';
import { Refusal } from '../refusal.ts';
import { bodyBytes, callSignal, modelPath, requestJson } from './arguments.ts';
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
  /** The questions by ids of the caller's choice, at least one and at most `maxQuestions`. */
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
   * Returns the answers to all questions of the request, with types that follow from the questions. The call waits in
   * the line for the model for at most `requestTimeoutMs`.
   *
   * @throws DecisionError when there is no answer; TypeError when an argument is none; the reason of `signal` when that
   * signal has fired.
   */
  decide<const Asked extends Questions>(
    request: DecisionRequest<Asked>,
    options?: CallOptions,
  ): Promise<Decision<Asked>>;
  /**
   * Returns the body of the answer to a request's body, both as JSON text exactly as over HTTP: for numbers whose
   * spelling matters, and for options that look like integers.
   *
   * @param body - The request as text, or as bytes of UTF-8.
   * @throws DecisionError when there is no answer; TypeError when an argument is none; the reason of `signal` when that
   * signal has fired.
   */
  decideJson(body: string | Uint8Array, options?: CallOptions): Promise<string>;
  /**
   * Loads the model from the folder `model`, uses it for all later calls, and resolves with its `ModelInfo`. Earlier
   * calls are still answered by the previous model, whose memory is freed after the last of them. A folder with
   * reference answers (`golden.jsonl`) has to give them first, as for `POST /reload` of a server. Swaps are done one
   * after the other, in the order of their calls.
   *
   * @param model - A model folder; a relative path starts at the working folder.
   * @throws EngineError when the model cannot be loaded or gives other answers than its references; the previous model
   * then stays in use. TypeError when `model` is no folder's path.
   */
  swap(model: string): Promise<ModelInfo>;
  /** Resolves when all calls are answered and the model's memory is freed. Later calls are refused. */
  close(): Promise<void>;
  /** Does the same as `close`, at the end of the block of an `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Returns an engine with its model loaded: the embedded model by default, or the one in the folder `options.model`.
 *
 * @throws EngineError when the runtime, the model or the device cannot be used; TypeError when an option is wrong.
 */
export async function createEngine(options: LocalEngineOptions = {}): Promise<LocalEngine> {
  const checked = localEngineOptions(options);
  return new InProcessEngine(await loadEngine(checked), checked);
}

class InProcessEngine implements LocalEngine {
  readonly #engine: Engine;
  readonly #options: EngineOptions;
  /** Settles when the latest swap is done. */
  #latestSwap: Promise<unknown> = Promise.resolve();

  constructor(engine: Engine, options: EngineOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  get model(): ModelInfo {
    return this.#engine.info();
  }

  async decide<const Asked extends Questions>(
    request: DecisionRequest<Asked>,
    options: CallOptions = {},
  ): Promise<Decision<Asked>> {
    return JSON.parse(await this.decideJson(requestJson(request), options));
  }

  async decideJson(body: string | Uint8Array, options: CallOptions = {}): Promise<string> {
    const bytes = bodyBytes(body);
    const signal = callSignal(options);
    signal?.throwIfAborted();
    const reply = await this.#engine.decide(bytes, signal && { signal });
    if (reply.failure === undefined) return reply.body.toString('utf8');
    if (reply.failure.code === 'cancelled') signal?.throwIfAborted();
    throw new DecisionError(reply.failure);
  }

  async swap(model: string): Promise<ModelInfo> {
    const folder = modelPath(model);
    const swapped = this.#latestSwap.then(async () => {
      await requireReferences({ ...this.#options, model: folder });
      await this.#engine.swap(folder);
      return this.model;
    });
    this.#latestSwap = swapped.catch(() => {});
    return swapped;
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Has a model give its reference answers, if it has any, in an engine of its own. */
async function requireReferences(options: EngineOptions): Promise<void> {
  if (!(await hasReferences(options.model))) return;
  const trial = await loadEngine(options);
  try {
    await tryReferences(trial, options.model, new AbortController().signal);
  } catch (error) {
    throw error instanceof Refusal ? new EngineError({ code: 'load_failed', message: error.message }) : error;
  } finally {
    await trial.close();
  }
}
