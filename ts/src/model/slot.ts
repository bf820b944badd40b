/** The slot of the one loaded model, and the health record about it. */
import type { CacheStats, Engine, ModelInfo, QueueLoad } from '../engine/contract.ts';
import { type ErrorCode, HttpFailure } from '../errors.ts';
import { publicSource } from './location.ts';
import type { SourceStatus } from './source.ts';

/** A model that answers requests. */
export interface LoadedModel {
  readonly engine: Engine;
  readonly info: ModelInfo;
  readonly loadedAt: Date;
  /** The place that the model came from, without user, password or query. */
  readonly source: string;
  /** Whether this is another model than the wanted one, which could not be obtained. */
  readonly fallback: boolean;
  /** The version that the remote source offers, where there is one. */
  readonly remoteVersion?: string | undefined;
  /** Whether the remote source could not be reached. */
  readonly offline: boolean;
  /** The model that this one has replaced, if it was another. */
  readonly previous?: Pick<LoadedModel, 'info' | 'loadedAt'> | undefined;
  /** The accelerator that an earlier model ran on, while this one runs on the processor. */
  readonly lostDevice?: string | undefined;
}

/** The facts that the loader knows of a model, besides the engine that runs it. */
type Origin = Partial<Pick<LoadedModel, 'fallback' | 'remoteVersion' | 'offline'>> & {
  /** The folder, file or URL of the model; a URL's user, password and query are taken out. */
  readonly source: string;
};

/** A load that failed. The reason in words is only for the log, since the health record is open to everybody. */
export interface LoadFailure {
  readonly code: ErrorCode;
  readonly at: Date;
  /** Whether the model was an offer of its source: the failure is over once the source has no refused offer. */
  readonly isOffer: boolean;
}

/** The value of `device` when no accelerator is used. */
const PROCESSOR = 'cpu';

const NO_CACHE: CacheStats = { hits: 0, misses: 0, evictions: 0, entries: 0, bytes: 0, limitBytes: 0 };

/** The holder of the loaded model. A request should read it once, since the next read may give another model. */
export class EngineSlot {
  #model: LoadedModel | undefined;
  #failure: LoadFailure | undefined;
  #reload: 'running' | 'queued' | undefined;

  /** The loaded model, if there is one. */
  get model(): LoadedModel | undefined {
    return this.#model;
  }

  /** The failure of the latest load; absent when the load did not fail. */
  get failure(): LoadFailure | undefined {
    return this.#failure;
  }

  /**
   * Returns the loaded model.
   * @throws HttpFailure `loading` or `load_failed` when there is none
   */
  require(): LoadedModel {
    if (this.#model) return this.#model;
    if (this.#failure === undefined) throw new HttpFailure('loading', 'the model is loading');
    throw new HttpFailure('load_failed', 'the model failed to load');
  }

  /** Takes note of a newly loaded model: the first one of `engine`, or the one that `engine` has swapped in. */
  loaded(engine: Engine, { source, fallback = false, remoteVersion, offline = false }: Origin): void {
    const replaced = this.#model;
    const info = engine.info();
    this.#model = {
      engine,
      info,
      loadedAt: new Date(),
      source: publicSource(source),
      fallback,
      remoteVersion,
      offline,
      previous: replaced && (isSameModel(replaced.info, info) ? replaced.previous : replacedModel(replaced)),
      lostDevice: info.device === PROCESSOR ? replaced && acceleratorOf(replaced) : undefined,
    };
    this.#failure = undefined;
  }

  /** Takes note of the state of the source. The model stays the same. */
  sourceIs({ offline, remoteVersion, isRefused }: SourceStatus): void {
    if (this.#model) this.#model = { ...this.#model, offline, remoteVersion };
    if (isRefused) this.#failure ??= { code: 'load_failed', at: new Date(), isOffer: true };
    else if (this.#failure?.isOffer) this.#failure = undefined;
  }

  /** Takes note that a load failed, with a code of `errors.ts`. A model that is loaded already goes on answering. */
  failed(code: ErrorCode, { isOffer = false }: Partial<Pick<LoadFailure, 'isOffer'>> = {}): void {
    this.#failure = { code, at: new Date(), isOffer };
  }

  /** The state of the reload that is under way; undefined while there is none. */
  get reload(): 'running' | 'queued' | undefined {
    return this.#reload;
  }

  /** Takes note whether a reload is under way, and whether one more waits behind it. */
  reloadIs(state: 'running' | 'queued' | undefined): void {
    this.#reload = state;
  }

  /** Returns the work of the loaded model; zeros while there is no model. */
  queue(): QueueLoad {
    return this.#model?.engine.queue() ?? { running: 0, waiting: 0, newestFirst: false };
  }

  /** Returns the statistics of the loaded model's KV cache; zeros while there is no model. */
  cache(): CacheStats {
    return this.#model?.engine.cache() ?? NO_CACHE;
  }
}

/** Returns the accelerator that a model runs on, or that an earlier model ran on. */
function acceleratorOf({ info, lostDevice }: LoadedModel): string | undefined {
  return info.device === PROCESSOR ? lostDevice : info.device;
}

/** Returns the part of a replaced model that is kept: its engine is not. */
function replacedModel({ info, loadedAt }: LoadedModel): Pick<LoadedModel, 'info' | 'loadedAt'> {
  return { info, loadedAt };
}

/** Whether two models are the same: a folder that was loaded again without a change replaces no model. */
function isSameModel(before: ModelInfo, now: ModelInfo): boolean {
  return before.name === now.name && before.version === now.version && before.sha256 === now.sha256;
}
