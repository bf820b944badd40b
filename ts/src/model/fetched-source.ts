/** Models that come from elsewhere, by way of the cache. */
import { setTimeout as delay } from 'node:timers/promises';
import { Refusal } from '../refusal.ts';
import type { CachedModel, ModelCache, Workspace } from './cache.ts';
import { type FetchRequest, fetchModel } from './fetch-model.ts';
import type { FoundModel, ModelSource, SourceListener, SourceStatus } from './source.ts';
import { reason, SourceError } from './source-error.ts';
import type { TrialNote } from './trial-note.ts';

const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = { away: 5 * 60_000, wrong: 60 * 60_000 };

/** One may have been an accident. */
const MAX_DEATHS = 2;

export interface FetchedSourceOptions
  extends Pick<FetchRequest, 'store' | 'packaging' | 'name' | 'source' | 'pinned' | 'limits'> {
  readonly cache: ModelCache;
  /** What the settings name, with all that is secret in it: it tells one source from another. */
  readonly identity: string;
  /** Whether it is on this machine: what is not there is then an error of whoever set it. */
  readonly isLocal: boolean;
  /** Time between two looks for a newer one; 0 looks for none. */
  readonly refreshMs: number;
  /** The first wait before it tries again. */
  readonly retryMs?: number;
  /**
   * Tries a model that was fetched, beside the one that answers. It ends when `signal` fires.
   *
   * @throws what is wrong with it.
   */
  readonly prove: (folder: string, signal: AbortSignal) => Promise<void>;
  /**
   * The model that answers where there is no other.
   *
   * @throws EngineError when it is not installed.
   */
  readonly embedded: () => FoundModel;
}

/** What the source offered when it was last asked. */
interface Seen {
  readonly sha256: string;
  readonly etag?: string | undefined;
}

export class FetchedSource implements ModelSource {
  readonly #options: FetchedSourceOptions;
  #seen: Seen | undefined;
  #status: SourceStatus = { offline: false };
  /** What of it was told last. */
  #reported: SourceStatus = this.#status;
  /** How many looks have failed since one did not. */
  #failures = 0;
  #isAsked = false;
  /** Why models could not be taken, by digest: they are not tried again until there is another. */
  readonly #rejected = new Map<string, string>();
  /** Models that this process has open, by digest. */
  readonly #open = new Map<string, CachedModel>();
  /** The digests of the model that answers, and of the last good one, which a later start begins with. */
  #answering: string | undefined;
  #good: string | undefined;
  /** The latest look. There is one at a time. */
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
      // Nobody knows yet whether the source is there, unless it does not matter.
      this.#status = { offline: pinned === '' };
      return this.#found(cached);
    }
    try {
      return await this.#ask(signal);
    } catch (error) {
      if (isLocal || !(error instanceof SourceError)) throw refusal(error);
      return this.#embedded(error.message, 'the embedded model answers until it can be had');
    }
  }

  async refresh(signal: AbortSignal): Promise<FoundModel> {
    // Somebody may have mended what was in its way.
    this.#rejected.clear();
    await this.#note.end();
    // What was good in another process need not be fetched or tried again.
    if (this.#seen === undefined) await this.#cached(signal);
    try {
      return await this.#ask(signal);
    } catch (error) {
      throw refusal(error);
    }
  }

  async accept({ sha256 }: FoundModel): Promise<void> {
    const { cache, identity, source } = this.#options;
    const before = this.#answering;
    this.#answering = sha256;
    // It was told with the model.
    this.#reported = this.#status;
    if (before !== undefined && before !== sha256) await this.#release(before);
    const model = sha256 === undefined ? undefined : this.#open.get(sha256);
    if (model === undefined) return;
    this.#rejected.delete(model.sha256);
    this.#good = model.sha256;
    const etag = this.#seen?.sha256 === model.sha256 ? this.#seen.etag : undefined;
    const good = { source, sha256: model.sha256, version: model.version, ...(etag !== undefined && { etag }) };
    // A cache that cannot be written is still good to read from.
    await cache.remember(identity, good).catch(() => {});
    await cache.prune(new Set([model.sha256])).catch(() => {});
  }

  async reject({ sha256 }: FoundModel): Promise<void> {
    // It could not be loaded a second time, and goes on answering.
    if (sha256 === undefined || sha256 === this.#answering) return;
    this.#rejected.set(sha256, `${this.source}: what it offers could not be loaded`);
    if (sha256 === this.#good) this.#good = undefined;
    await this.#release(sha256);
  }

  async instead({ sha256, notes }: FoundModel, why: string): Promise<FoundModel | undefined> {
    // There is nothing below the embedded one, and a file of this machine is an error of whoever named it.
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
    // What gets here is that `signal` has fired.
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
      // A reload may have asked and told meanwhile, too.
      if (!isSame(this.#reported, this.#status)) listener.status(this.report());
    }
  }

  /** Milliseconds until the source is asked again; undefined when it never is. */
  #nextLookMs(): number | undefined {
    const { pinned, refreshMs, retryMs = FIRST_RETRY_MS } = this.#options;
    if (pinned !== '' && this.#answering === pinned) return undefined;
    // What is there and wrong takes as long to fetch as what is right.
    const longestMs = this.#status.offline ? LONGEST_RETRY_MS.away : LONGEST_RETRY_MS.wrong;
    if (this.#failures > 0) return Math.min(retryMs * 2 ** (this.#failures - 1), longestMs);
    if (!this.#isAsked) return 0;
    return refreshMs === 0 ? undefined : refreshMs;
  }

  /** Looks for another model and hands it over; returns what went wrong. */
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
    // Nobody may have taken it after that.
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

  /** @throws SourceError when the source gives no model. */
  async #askNow(signal: AbortSignal): Promise<FoundModel> {
    signal.throwIfAborted();
    let workspace: Workspace | undefined;
    const makeWorkspace = async () => {
      workspace = await this.#options.cache.workspace();
      return workspace;
    };
    try {
      const model = await this.#fetched(signal, makeWorkspace);
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
      const { isRefused: _, ...status } = this.#status;
      this.#status = { ...status, offline: problem.isAway, ...(!problem.isAway && { isRefused: true }) };
      throw problem;
    } finally {
      this.#isAsked = true;
      await workspace?.remove();
    }
  }

  async #fetched(signal: AbortSignal, makeWorkspace: () => Promise<Workspace>): Promise<CachedModel> {
    const { cache, ...options } = this.#options;
    let workspace: Workspace | undefined;
    // A tag only helps where the model that it is of is still here.
    const known = this.#seen && (await this.#model(this.#seen.sha256, signal)) ? this.#seen : undefined;
    const fetched = await fetchModel({
      ...options,
      etag: known?.etag,
      signal,
      isHere: async (sha256) => (await this.#model(sha256, signal)) !== undefined,
      workspace: async () => {
        workspace = await makeWorkspace();
        return workspace.folder;
      },
      offered: (remoteVersion) => {
        this.#status = { ...this.#status, remoteVersion };
      },
    });
    if (fetched === 'unchanged' && known === undefined) throw new SourceError(`${this.source}: sent nothing`);
    const seen = fetched === 'unchanged' ? known : fetched;
    if (fetched !== 'unchanged' && fetched.folder !== undefined && workspace !== undefined) {
      await cache.keep(workspace, fetched.folder, { sha256: fetched.sha256, signal });
    }
    return this.#opened(seen, signal);
  }

  /** What was good before is good; what was not stays so. */
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
      // A trial that was ended says nothing against the model.
      signal.throwIfAborted();
      this.#rejected.set(sha256, `${this.source}: what it offers is not taken: ${reason(error)}`);
      await this.#release(sha256);
      throw error;
    } finally {
      if (deaths < MAX_DEATHS) await this.#note.end();
    }
  }

  async #opened(seen: Seen | undefined, signal: AbortSignal): Promise<CachedModel> {
    const model = seen && (await this.#model(seen.sha256, signal));
    if (seen === undefined || model === undefined) throw new SourceError(`${this.source}: was lost from the cache`);
    this.#seen = { sha256: seen.sha256, etag: seen.etag };
    this.#status = { ...this.#status, remoteVersion: model.version };
    return model;
  }

  async #model(sha256: string, signal?: AbortSignal): Promise<CachedModel | undefined> {
    const open = this.#open.get(sha256) ?? (await this.#options.cache.open(sha256, signal));
    if (open !== undefined) this.#open.set(sha256, open);
    return open;
  }

  /** The model in the cache that may answer without the source being asked. */
  async #cached(signal?: AbortSignal): Promise<CachedModel | undefined> {
    const { cache, identity, pinned } = this.#options;
    const good = await cache.lastGood(identity);
    // One that is pinned and was not tried takes the way of what is fetched.
    if (good === undefined || (pinned !== '' && good.sha256 !== pinned) || this.#rejected.has(good.sha256))
      return undefined;
    const model = await this.#model(good.sha256, signal);
    if (model === undefined) return undefined;
    this.#good = good.sha256;
    this.#seen ??= { sha256: good.sha256, etag: good.etag };
    return model;
  }

  async #release(sha256: string): Promise<void> {
    const model = this.#open.get(sha256);
    this.#open.delete(sha256);
    await model?.release();
  }

  #found({ folder, sha256 }: CachedModel): FoundModel {
    return { folder, sha256, source: this.source, fallback: false, notes: [], ...this.#status };
  }

  /** @throws Refusal with `why` as well when it is not there. */
  #embedded(why: string, meanwhile = 'the embedded model answers instead'): FoundModel {
    try {
      return { ...this.#options.embedded(), fallback: true, notes: [`${why}; ${meanwhile}`], ...this.#status };
    } catch (error) {
      throw new Refusal(`${why}; the embedded model cannot answer instead: ${reason(error)}`, { cause: error });
    }
  }
}

/** Waits for what never fails, until `signal` fires. */
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

function refusal(error: unknown): unknown {
  return error instanceof SourceError ? new Refusal(error.message, { cause: error }) : error;
}
