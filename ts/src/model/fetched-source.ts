/** The source of models that come from elsewhere, by way of the cache. */
import { setTimeout as delay } from 'node:timers/promises';
import { Refusal } from '../refusal.ts';
import type { CachedModel, ModelCache, Workspace } from './cache.ts';
import type { FetchProgress } from './download.ts';
import type { Fetched, FetchOrder } from './fetch-model.ts';
import type { FoundModel, ModelSource, SourceListener, SourceStatus } from './source.ts';
import { reason, SourceError } from './source-error.ts';
import type { TrialNote } from './trial-note.ts';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = { away: 5 * 60_000, wrong: 60 * 60_000 };

/** A model is refused once this many of its trials have ended the process; a single one may have been an accident. */
const MAX_DEATHS = 2;

export interface FetchedSourceOptions extends Pick<FetchOrder, 'name' | 'source' | 'pinned' | 'limits'> {
  /**
   * Fetches the model that the source offers, unless it is the one that is known already.
   *
   * @throws SourceError when there is no model, or a part of it is not as it must be.
   */
  readonly fetch: (order: FetchOrder) => Promise<Fetched | 'unchanged'>;
  /** Returns the name of the source at a revision; needed where models have revisions. */
  readonly atRevision?: (revision: string) => string;
  readonly progress?: FetchProgress | undefined;
  readonly cache: ModelCache;
  /** The source as the settings name it, secrets included: it tells one source from another. */
  readonly identity: string;
  /** Whether the source is on this machine: a missing file is then an error of the person who named it. */
  readonly isLocal: boolean;
  /** Time between two looks for a newer model; with 0 there are no regular looks. */
  readonly refreshMs: number;
  /** The wait after a first failed look; it doubles with each further failure. */
  readonly retryMs?: number;
  /**
   * Tries a fetched model while another one may be answering. The trial ends when `signal` fires.
   *
   * @throws an error that says what is wrong with the model.
   */
  readonly prove: (folder: string, signal: AbortSignal) => Promise<void>;
  /**
   * Returns the embedded model, which answers where there is no other.
   *
   * @throws EngineError when it is not installed.
   */
  readonly embedded: () => FoundModel;
}

/** The offer of the source when it was last asked. */
interface Seen {
  readonly sha256: string;
  readonly etag?: string | undefined;
  readonly revision?: string | undefined;
}

export class FetchedSource implements ModelSource {
  readonly #options: FetchedSourceOptions;
  #seen: Seen | undefined;
  #status: SourceStatus = { offline: false };
  /** The status that was reported last. */
  #reported: SourceStatus = this.#status;
  /** The number of failed looks since the last successful one. */
  #failures = 0;
  /** The time before which the source does not want to be asked again, by the clock of `performance`. */
  #notBeforeMs = 0;
  #isAsked = false;
  /** The reasons why models could not be taken, by digest: these models are not tried again before a `refresh`. */
  readonly #rejected = new Map<string, string>();
  /** The revisions that models belong to, by digest. */
  readonly #revisions = new Map<string, string>();
  /** The models that this process has open, by digest. */
  readonly #open = new Map<string, CachedModel>();
  /** The digests of the model that answers, and of the last good one, which a later start begins with. */
  #answering: string | undefined;
  #good: string | undefined;
  /** The latest look. Looks run one at a time. */
  #look: Promise<unknown> = Promise.resolve();

  readonly #note: TrialNote;

  constructor(options: FetchedSourceOptions) {
    this.#options = options;
    this.#note = options.cache.trialNote(options.identity);
  }

  get source(): string {
    return this.#options.source;
  }

  async find(signal: AbortSignal): Promise<FoundModel> {
    const { isLocal, pinned } = this.#options;
    const cached = await this.#cached(signal);
    if (cached !== undefined && !isLocal) {
      // The source has not been asked yet, so it counts as offline; for a pinned model this does not matter.
      this.#status = { offline: pinned === '' };
      return this.#found(cached);
    }
    try {
      return await this.#ask(signal);
    } catch (error) {
      if (isLocal || !(error instanceof SourceError)) throw sourceRefusal(error);
      return this.#embedded(error.message, 'the embedded model answers until it can be had');
    }
  }

  async refresh(signal: AbortSignal): Promise<FoundModel> {
    // The faults that models were rejected for may have been repaired.
    this.#rejected.clear();
    await this.#note.forget();
    // A model that was good in another process need not be fetched or tried again.
    if (this.#seen === undefined) await this.#cached(signal);
    try {
      return await this.#ask(signal);
    } catch (error) {
      throw sourceRefusal(error);
    }
  }

  async accept({ sha256 }: FoundModel): Promise<void> {
    const { cache, identity, source } = this.#options;
    const before = this.#answering;
    this.#answering = sha256;
    // The status was reported together with the model.
    this.#reported = this.#status;
    if (before !== undefined && before !== sha256) await this.#release(before);
    const model = sha256 === undefined ? undefined : this.#open.get(sha256);
    if (model === undefined) return;
    this.#rejected.delete(model.sha256);
    this.#good = model.sha256;
    const etag = this.#seen?.sha256 === model.sha256 ? this.#seen.etag : undefined;
    const revision = this.#revisions.get(model.sha256);
    const known = { ...(etag !== undefined && { etag }), ...(revision !== undefined && { revision }) };
    const good = { source, sha256: model.sha256, version: model.version, ...known };
    // A cache that cannot be written can still be read.
    await cache.remember(identity, good).catch(() => {});
    await cache.prune(new Set([model.sha256])).catch(() => {});
  }

  async reject({ sha256 }: FoundModel): Promise<void> {
    // The model that answers could not be loaded a second time. It goes on answering.
    if (sha256 === undefined || sha256 === this.#answering) return;
    this.#rejected.set(sha256, `${this.source}: what it offers could not be loaded`);
    if (sha256 === this.#good) this.#good = undefined;
    await this.#release(sha256);
  }

  async instead({ sha256, notes }: FoundModel, why: string): Promise<FoundModel | undefined> {
    // No model can replace the embedded one, and a wrong file of this machine is an error of the person who named it.
    if (sha256 === undefined || this.#options.isLocal) return undefined;
    const good = await this.#cached();
    const model = good === undefined ? this.#embedded(why) : { ...this.#found(good), notes: [why] };
    return { ...model, notes: [...notes, ...model.notes] };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((sha256) => this.#release(sha256)));
  }

  report(): SourceStatus {
    this.#reported = this.#status;
    return this.#status;
  }

  watch(listener: SourceListener, signal: AbortSignal): Promise<void> {
    // The only error that gets here is that `signal` has fired.
    return this.#watch(listener, signal).catch(() => {});
  }

  async #watch(listener: SourceListener, signal: AbortSignal): Promise<void> {
    let told = '';
    this.#reported = this.#status;
    for (;;) {
      const waitMs = this.#nextLookMs();
      if (waitMs === undefined) return;
      await delay(waitMs, undefined, { signal, ref: false });
      const problem = await this.#offer(listener, signal);
      if (problem !== undefined && problem !== told) listener.note(problem);
      told = problem ?? '';
      // A reload may also have asked the source meanwhile, and reported its status.
      if (!isSame(this.#reported, this.#status)) listener.status(this.report());
    }
  }

  /** Returns the milliseconds until the source is asked again; undefined when it never is. */
  #nextLookMs(): number | undefined {
    const waitMs = this.#regularWaitMs();
    return waitMs === undefined ? undefined : Math.max(waitMs, this.#notBeforeMs - performance.now());
  }

  #regularWaitMs(): number | undefined {
    const { pinned, refreshMs, retryMs = FIRST_RETRY_MS } = this.#options;
    if (pinned !== '' && this.#answering === pinned) return undefined;
    // The waits get longer where a wrong model is offered, which takes as long to fetch as a right one.
    const longestMs = this.#status.offline ? LONGEST_RETRY_MS.away : LONGEST_RETRY_MS.wrong;
    if (this.#failures > 0) return Math.min(retryMs * 2 ** (this.#failures - 1), longestMs);
    if (!this.#isAsked) return 0;
    return refreshMs === 0 ? undefined : refreshMs;
  }

  /** Looks for another model and hands it over; returns the reason of a failure, else undefined. */
  async #offer(listener: SourceListener, signal: AbortSignal): Promise<string | undefined> {
    try {
      const model = await this.#ask(signal);
      if (model.sha256 !== this.#answering) await this.#handOver(model, listener, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return reason(error);
    }
  }

  async #handOver(model: FoundModel, listener: SourceListener, signal: AbortSignal): Promise<void> {
    let isTaken: boolean;
    try {
      isTaken = await listener.found(model, () => this.#seen?.sha256 === model.sha256);
    } catch (error) {
      this.#failures += 1;
      await this.reject(model);
      throw error;
    }
    // After `signal` has fired, the listener may not have taken the model.
    signal.throwIfAborted();
    if (isTaken) {
      await this.accept(model);
      listener.status(this.report());
    } else if (model.sha256 !== undefined && model.sha256 !== this.#answering) {
      await this.#release(model.sha256);
    }
  }

  #ask(signal: AbortSignal): Promise<FoundModel> {
    const before = this.#look;
    const look = unlessAborted(before, signal).then(() => this.#askNow(signal));
    this.#look = Promise.allSettled([before, look]);
    return look;
  }

  /**
   * Returns the model that the source offers now, fetched and tried.
   *
   * @throws SourceError when the source gives no model.
   */
  async #askNow(signal: AbortSignal): Promise<FoundModel> {
    signal.throwIfAborted();
    let workspace: Workspace | undefined;
    const makeWorkspace = async () => {
      workspace = await this.#options.cache.workspace();
      return workspace;
    };
    try {
      const model = await this.#fetched(signal, makeWorkspace).catch((error: unknown) => {
        throw this.#options.cache.explained(error);
      });
      await this.#prove(model, signal);
      signal.throwIfAborted();
      this.#failures = 0;
      this.#status = { offline: false, remoteVersion: this.#status.remoteVersion };
      return this.#found(model);
    } catch (error) {
      signal.throwIfAborted();
      const problem =
        error instanceof SourceError ? error : new SourceError(`${this.source}: ${reason(error)}`, { cause: error });
      this.#failures += 1;
      this.#notBeforeMs = performance.now() + (problem.retryMs ?? 0);
      const { isRefused: _, ...status } = this.#status;
      this.#status = { ...status, offline: problem.isAway, ...(!problem.isAway && { isRefused: true }) };
      throw problem;
    } finally {
      this.#isAsked = true;
      await workspace?.remove();
    }
  }

  async #fetched(signal: AbortSignal, makeWorkspace: () => Promise<Workspace>): Promise<CachedModel> {
    const { cache, fetch, name, source, pinned, limits, progress } = this.#options;
    let workspace: Workspace | undefined;
    // A tag helps only while its model is still in the cache.
    const known = this.#seen && (await this.#model(this.#seen.sha256, signal)) ? this.#seen : undefined;
    const fetched = await fetch({
      ...{ name, source, pinned, limits, progress, signal },
      etag: known?.etag,
      isHere: async (sha256) => (await this.#model(sha256, signal)) !== undefined,
      workspace: async () => {
        workspace = await makeWorkspace();
        return workspace.folder;
      },
      offered: (version) => this.#offers(version),
    });
    if (fetched === 'unchanged' && known === undefined) throw new SourceError(`${this.source}: sent nothing`);
    const seen = fetched === 'unchanged' ? known : fetched;
    if (fetched !== 'unchanged') {
      const { sha256, revision, folder } = fetched;
      if (folder !== undefined && workspace !== undefined) await cache.keep(workspace, folder, { sha256, signal });
      // A cache that cannot be written can still be read.
      await cache.addName(sha256, { source, revision }).catch(() => {});
    }
    return this.#opened(seen, signal);
  }

  /**
   * Tries a model. The last good model is not tried again, and a rejected model stays rejected.
   *
   * @throws an error that says what is wrong with the model.
   */
  async #prove({ sha256, folder }: CachedModel, signal: AbortSignal): Promise<void> {
    if (sha256 === this.#good) return;
    const refused = this.#rejected.get(sha256);
    if (refused !== undefined) {
      await this.#release(sha256);
      throw new SourceError(refused);
    }
    const deaths = await this.#note.begin(sha256);
    try {
      if (deaths >= MAX_DEATHS) throw new Error(`its trial has ended the process ${deaths} times`);
      await this.#options.prove(folder, signal);
    } catch (error) {
      // A trial that was ended by `signal` says nothing against the model.
      signal.throwIfAborted();
      this.#rejected.set(sha256, `${this.source}: what it offers is not taken: ${reason(error)}`);
      await this.#release(sha256);
      throw error;
    } finally {
      await this.#note.end({ isKept: deaths >= MAX_DEATHS });
    }
  }

  async #opened(seen: Seen | undefined, signal: AbortSignal): Promise<CachedModel> {
    const model = seen && (await this.#model(seen.sha256, signal));
    if (seen === undefined || model === undefined) throw new SourceError(`${this.source}: was lost from the cache`);
    this.#seen = seen;
    this.#noteRevision(seen);
    this.#offers(model.version);
    return model;
  }

  /** Takes note of the offered version. Exported models have none in their files, and the engine says `0` then. */
  #offers(version: string): void {
    this.#status = { ...this.#status, remoteVersion: version || undefined };
  }

  async #model(sha256: string, signal?: AbortSignal): Promise<CachedModel | undefined> {
    const open = this.#open.get(sha256) ?? (await this.#options.cache.open(sha256, signal));
    if (open !== undefined) this.#open.set(sha256, open);
    return open;
  }

  /** Returns the model in the cache that may answer before the source is asked; undefined when there is none. */
  async #cached(signal?: AbortSignal): Promise<CachedModel | undefined> {
    const { cache, identity, pinned } = this.#options;
    const good = await cache.lastGood(identity);
    // A pinned model that was not tried yet is found and tried like a fetched one.
    if (good === undefined || (pinned !== '' && good.sha256 !== pinned) || this.#rejected.has(good.sha256))
      return undefined;
    const model = await this.#model(good.sha256, signal);
    if (model === undefined) return undefined;
    this.#good = good.sha256;
    this.#seen ??= good;
    this.#noteRevision(good);
    return model;
  }

  #noteRevision({ sha256, revision }: Seen): void {
    if (revision !== undefined) this.#revisions.set(sha256, revision);
  }

  async #release(sha256: string): Promise<void> {
    const model = this.#open.get(sha256);
    this.#open.delete(sha256);
    await model?.release();
  }

  #found({ folder, sha256 }: CachedModel): FoundModel {
    const revision = this.#revisions.get(sha256);
    const source = revision === undefined ? this.source : (this.#options.atRevision?.(revision) ?? this.source);
    return { folder, sha256, source, fallback: false, notes: [], ...this.#status };
  }

  /**
   * Returns the embedded model, with `why` in its notes.
   *
   * @throws Refusal that also says `why` when the embedded model is not installed.
   */
  #embedded(why: string, meanwhile = 'the embedded model answers instead'): FoundModel {
    try {
      return { ...this.#options.embedded(), fallback: true, notes: [`${why}; ${meanwhile}`], ...this.#status };
    } catch (error) {
      throw new Refusal(`${why}; the embedded model cannot answer instead: ${reason(error)}`, { cause: error });
    }
  }
}

/** Resolves once `promise`, which must never reject, resolves; rejects when `signal` fires before. */
function unlessAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    promise.then(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    });
  });
}

function isSame(before: SourceStatus, now: SourceStatus): boolean {
  const isRefused = [before, now].map((status) => status.isRefused === true);
  return before.offline === now.offline && before.remoteVersion === now.remoteVersion && isRefused[0] === isRefused[1];
}

function sourceRefusal(error: unknown): unknown {
  return error instanceof SourceError ? new Refusal(error.message, { cause: error }) : error;
}
