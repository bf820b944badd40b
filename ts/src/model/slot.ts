/** The place of the one loaded model. A newer model is swapped in here while requests go on. */
import type { CacheStats, Engine, ModelInfo, QueueLoad } from '../engine.ts';
import { HttpFailure } from '../errors.ts';
import type { Phase } from '../lifecycle.ts';
import type { Health, PreviousModel } from '../schemas/health.ts';

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
}

/** What the loader knows of a model beside the engine that runs it. */
export type Origin = Partial<Pick<LoadedModel, 'fallback' | 'remoteVersion' | 'offline'>> & {
  /** A folder, a file or a URL; a URL's user, password and query are taken out. */
  readonly source: string;
};

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

const NO_CACHE: CacheStats = { hits: 0, misses: 0, evictions: 0, entries: 0, bytes: 0, limitBytes: 0 };

/** Holds the loaded model. Read it once a request: the next read may give another. */
export class EngineSlot {
  #model: LoadedModel | undefined;
  #failure: string | undefined;

  /** The loaded model, if there is one. */
  get model(): LoadedModel | undefined {
    return this.#model;
  }

  /** Why the latest load failed; absent when it did not. */
  get failure(): string | undefined {
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

  /** Takes a newly loaded engine and returns the one that it replaces, which is the caller's to close. */
  loaded(engine: Engine, { source, fallback = false, remoteVersion, offline = false }: Origin): Engine | undefined {
    const replaced = this.#model;
    this.#model = {
      engine,
      info: engine.info(),
      loadedAt: new Date(),
      source: publicSource(source),
      fallback,
      remoteVersion,
      offline,
      previous: replaced && previousModel(replaced),
    };
    this.#failure = undefined;
    return replaced?.engine;
  }

  /** Notes that a load failed. A model that is there goes on answering. */
  failed(message: string): void {
    this.#failure = message;
  }

  /** Returns how much work the loaded model has; none while there is no model. */
  queue(): QueueLoad {
    return this.#model?.engine.queue() ?? { running: 0, waiting: 0 };
  }

  /** Returns how the states are doing that the loaded model keeps; zeros while there is no model. */
  cache(): CacheStats {
    return this.#model?.engine.cache() ?? NO_CACHE;
  }

  /** Returns the health record; all is well only when its `status` is `ok`. */
  health(phase: Phase): Health {
    const known = this.#model ? modelHealth(this.#model) : NOT_LOADED;
    return { status: this.#status(phase), ...known };
  }

  #status(phase: Phase): 'ok' | 'loading' | 'draining' | 'error' {
    if (phase !== 'serving') return 'draining';
    if (this.#model) return 'ok';
    return this.#failure === undefined ? 'loading' : 'error';
  }
}

function modelHealth(model: LoadedModel): Omit<Health, 'status'> {
  const { info, remoteVersion, offline, previous } = model;
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
  };
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
