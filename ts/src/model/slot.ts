/** The place of the one loaded model, and what is said of it. */
import type { CacheStats, Engine, ModelInfo, QueueLoad } from '../engine.ts';
import { type ErrorCode, HttpFailure } from '../errors.ts';
import type { Phase } from '../lifecycle.ts';
import type { FailedReload, Health, PreviousModel } from '../schemas/health.ts';
import type { SourceStatus } from './source.ts';

/** A model that answers requests. */
export interface LoadedModel {
  readonly engine: Engine;
  readonly info: ModelInfo;
  readonly loadedAt: Date;
  /** Where the model came from, without user, password or query. */
  readonly source: string;
  /** Whether this is another model than the wanted one, which could not be had. */
  readonly fallback: boolean;
  /** The version that the remote source offers, where there is one. */
  readonly remoteVersion?: string | undefined;
  /** Whether the remote source could not be reached. */
  readonly offline: boolean;
  readonly previous?: PreviousModel | undefined;
  /** The accelerator that a model before it ran on, while this one runs on the processor. */
  readonly lostDevice?: string | undefined;
}

/** What the loader knows of a model beside the engine that runs it. */
export type Origin = Partial<Pick<LoadedModel, 'fallback' | 'remoteVersion' | 'offline'>> & {
  /** A folder, a file or a URL; a URL's user, password and query are taken out. */
  readonly source: string;
};

/** A load that failed. Why in words is for the log: the health record is open to everybody. */
export interface LoadFailure {
  readonly code: ErrorCode;
  readonly at: Date;
  /** Whether it is what the source offers by itself, and over when it offers something else. */
  readonly isOffer: boolean;
}

const NOT_LOADED = {
  device: null,
  model: null,
  version: null,
  sha256: null,
  source: null,
  fallback: null,
  loaded_at: null,
  dir: null,
} as const satisfies Omit<Health, 'status'>;

/** What `device` is when no accelerator computes. */
const PROCESSOR = 'cpu';

const NO_CACHE: CacheStats = { hits: 0, misses: 0, evictions: 0, entries: 0, bytes: 0, limitBytes: 0 };

/** Holds the loaded model. Read it once a request: the next read may give another. */
export class EngineSlot {
  #model: LoadedModel | undefined;
  #failure: LoadFailure | undefined;
  #reload: 'running' | 'queued' | undefined;

  /** The loaded model, if there is one. */
  get model(): LoadedModel | undefined {
    return this.#model;
  }

  /** Why the latest load failed; absent when it did not. */
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

  /** Takes note of a newly loaded model: the first of `engine`, or the one that it has swapped in. */
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
      previous: replaced && (isSameModel(replaced.info, info) ? replaced.previous : previousModel(replaced)),
      lostDevice: info.device === PROCESSOR ? replaced && acceleratorOf(replaced) : undefined,
    };
    this.#failure = undefined;
  }

  /** Takes note of what is known of the source. The model is the same. */
  sourceIs({ offline, remoteVersion, isRefused }: SourceStatus): void {
    if (this.#model) this.#model = { ...this.#model, offline, remoteVersion };
    if (isRefused) this.#failure ??= { code: 'load_failed', at: new Date(), isOffer: true };
    else if (this.#failure?.isOffer) this.#failure = undefined;
  }

  /** Takes note that a load failed, with a code of `errors.ts`. A model that is there goes on answering. */
  failed(code: ErrorCode, { isOffer = false }: Partial<Pick<LoadFailure, 'isOffer'>> = {}): void {
    this.#failure = { code, at: new Date(), isOffer };
  }

  /** Takes note of a reload that is under way, and of one more behind it. */
  reloadIs(state: 'running' | 'queued' | undefined): void {
    this.#reload = state;
  }

  /** Returns how much work the loaded model has; none while there is no model. */
  queue(): QueueLoad {
    return this.#model?.engine.queue() ?? { running: 0, waiting: 0, newestFirst: false };
  }

  /** Returns how the states are doing that the loaded model keeps; zeros while there is no model. */
  cache(): CacheStats {
    return this.#model?.engine.cache() ?? NO_CACHE;
  }

  /** Returns the health record; all is well only when its `status` is `ok`. */
  health(phase: Phase): Health {
    const known = this.#model ? modelHealth(this.#model, this.#failure) : NOT_LOADED;
    return { status: this.#status(phase), ...known, ...(this.#reload && { reload: this.#reload }) };
  }

  #status(phase: Phase): 'ok' | 'loading' | 'draining' | 'error' {
    if (phase !== 'serving') return 'draining';
    if (this.#model) return 'ok';
    return this.#failure === undefined ? 'loading' : 'error';
  }
}

function modelHealth(model: LoadedModel, failure: LoadFailure | undefined): Omit<Health, 'status'> {
  const { info, remoteVersion, offline, previous, lostDevice } = model;
  return {
    device: info.device,
    model: info.name,
    version: info.version,
    sha256: info.sha256,
    source: model.source,
    fallback: model.fallback,
    loaded_at: model.loadedAt.toISOString(),
    dir: info.dir,
    ...(remoteVersion !== undefined && { remote_version: remoteVersion }),
    ...(offline && { offline }),
    ...(previous && { previous }),
    ...(lostDevice !== undefined && { lost_device: lostDevice }),
    ...(failure && { failed_reload: failedReload(failure) }),
  };
}

function failedReload({ code, at }: LoadFailure): FailedReload {
  return { code, failed_at: at.toISOString() };
}

/** The accelerator that a model runs on, or that one before it did. */
function acceleratorOf({ info, lostDevice }: LoadedModel): string | undefined {
  return info.device === PROCESSOR ? lostDevice : info.device;
}

/** A folder that was loaded anew and has not changed replaces nothing. */
function isSameModel(before: ModelInfo, now: ModelInfo): boolean {
  return before.name === now.name && before.version === now.version && before.sha256 === now.sha256;
}

function previousModel({ info, loadedAt }: LoadedModel): PreviousModel {
  return { model: info.name, version: info.version, sha256: info.sha256, loaded_at: loadedAt.toISOString() };
}

/** Returns `source` without what may be secret in it: a URL's user, password, query and fragment. */
export function publicSource(source: string): string {
  // A drive letter looks like a scheme to the URL parser: only `scheme://` is taken for a URL.
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) return source;
  if (!URL.canParse(source)) return source.replace(/[?#].*$/s, '').replace(/\/\/.*@/s, '//');
  const url = new URL(source);
  url.username = url.password = url.search = url.hash = '';
  return url.href;
}
