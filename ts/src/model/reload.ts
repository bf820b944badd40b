/** Replaces the model while requests go on: when somebody asks for it, and when its source has a newer one. */
import type { Logger } from 'pino';
import { EngineError, type ModelInfo } from '../engine.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';
import { Refusal } from '../refusal.ts';
import type { LoadedEngine } from './load.ts';
import type { EngineSlot } from './slot.ts';
import type { FoundModel, ModelSource, SourceListener } from './source.ts';
import { reason } from './source-error.ts';

export interface ReloaderParts {
  readonly slot: EngineSlot;
  /** The model to start with. */
  readonly loaded: Promise<LoadedEngine>;
  /**
   * Reads the settings anew and returns the source that they name now: `before`, unless they name another.
   *
   * @throws Refusal when a setting is wrong.
   */
  readonly open: (before: ModelSource) => Promise<ModelSource>;
  /**
   * Asks a model folder for its own reference answers, beside the model that answers. It ends when `signal` fires.
   *
   * @throws what is wrong with it.
   */
  readonly prove: (folder: string, signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

/** A reload that somebody has asked for. */
export interface AskedReload {
  /** Whether it begins when the one that is under way has ended. */
  readonly isQueued: boolean;
  /** Resolves when the model answers that the settings and their source name then; rejects with what has prevented it. */
  readonly done: Promise<void>;
}

/** A reload that has begun. */
interface RunningReload {
  /** Ends the fetching and the trial. */
  readonly stop: AbortController;
  /** Known when the settings are read. */
  source?: ModelSource;
}

/** One load at a time. Whatever goes wrong with it, the model that answers goes on answering. */
export class Reloader {
  readonly #parts: ReloaderParts;
  readonly #stopped = new AbortController();
  #source: Promise<ModelSource>;
  #watching = new AbortController();
  #latest: Promise<void>;
  /** The digest of the model that answers, where it was fetched. */
  #answering: string | undefined;
  /** The reload that has not begun. */
  #next: Promise<void> | undefined;
  #running: RunningReload | undefined;

  constructor(parts: ReloaderParts) {
    this.#parts = parts;
    this.#source = parts.loaded.then(({ source }) => source);
    this.#latest = this.#source.then(
      () => {},
      () => {},
    );
  }

  /**
   * Resolves when the first model answers.
   *
   * @throws Refusal when it cannot be loaded.
   */
  async start(): Promise<void> {
    const { slot, loaded, log } = this.#parts;
    const { engine, model, source } = await loaded;
    for (const note of model.notes) log.warn(note);
    slot.loaded(engine, model);
    logLoaded(log, engine.info());
    this.#watch(source);
  }

  /** Ends what waits for a source, and watches none any more. */
  stop(): void {
    this.#stopped.abort();
    this.#watching.abort();
    this.#running?.stop.abort();
  }

  /**
   * Has the model loaded that the settings and their source name. It begins at once, or once after the reload that is under
   * way: however many ask meanwhile, they ask for the same. What goes wrong is in the log, too.
   */
  reload(): AskedReload {
    const running = this.#running;
    this.#next ??= this.#enqueue(() => this.#reloadNow());
    // What was asked for may be gone, and its source slow.
    if (running !== undefined) this.#endOutdated(running).catch(() => {});
    this.#tellState();
    return { isQueued: running !== undefined, done: this.#next };
  }

  async #reloadNow(): Promise<void> {
    const running: RunningReload = { stop: new AbortController() };
    [this.#running, this.#next] = [running, undefined];
    this.#tellState();
    try {
      await this.#reloadFrom(await this.#source, running);
    } finally {
      this.#running = undefined;
      this.#tellState();
    }
  }

  async #reloadFrom(before: ModelSource, running: RunningReload): Promise<void> {
    const { signal } = running.stop;
    this.#stopped.signal.throwIfAborted();
    const source = await this.#parts.open(before);
    running.source = source;
    try {
      await this.#take(source, await source.refresh(signal), signal);
    } catch (error) {
      if (source !== before) await source.close();
      throw error;
    }
    if (source === before) return;
    this.#watch(source);
    await before.close();
  }

  /** Ends a reload whose source the settings do not name any more. One that is being loaded already is loaded. */
  async #endOutdated({ source, stop }: RunningReload): Promise<void> {
    if (source === undefined) return;
    const now = await this.#parts.open(source);
    if (now === source) return;
    await now.close();
    stop.abort(new Refusal(`${source.source}: is not what the settings name any more`));
  }

  #tellState(): void {
    const running = this.#running && 'running';
    this.#parts.slot.reloadIs(this.#next ? 'queued' : running);
  }

  /** Watches `source` in place of the one before. */
  #watch(source: ModelSource): void {
    this.#source = Promise.resolve(source);
    this.#watching.abort();
    if (this.#stopped.signal.aborted) return;
    this.#watching = new AbortController();
    const { signal } = this.#watching;
    const { slot, log } = this.#parts;
    const listener: SourceListener = {
      found: (model, isWanted) =>
        this.#enqueue(
          async () => {
            // Another source has taken its place meanwhile, or a reload has found a newer one.
            if (signal.aborted || !isWanted()) return false;
            const isAnswering = model.sha256 !== undefined && model.sha256 === this.#answering;
            if (!isAnswering) await this.#replace(model);
            return true;
          },
          { isOffer: true },
        ),
      status: (status) => {
        if (!signal.aborted) slot.sourceIs(status);
      },
      note: (line) => log.warn(line),
    };
    source.watch(listener, signal);
  }

  /** Does `load` when the one before it is done. */
  #enqueue<Result>(load: () => Promise<Result>, kind: { readonly isOffer?: boolean } = {}): Promise<Result> {
    const done = this.#latest.then(load).catch((error: unknown) => {
      this.#failed(error, kind);
      throw error;
    });
    this.#latest = done.then(
      () => {},
      () => {},
    );
    return done;
  }

  /** Replaces the model and tells its source how that went, as a source does itself of what it offers. */
  async #take(source: ModelSource, model: FoundModel, signal: AbortSignal): Promise<void> {
    try {
      // What was fetched has been tried by its source; a folder may be another than at the last time.
      if (model.sha256 === undefined) await this.#parts.prove(model.folder, signal);
      await this.#replace(model);
    } catch (error) {
      await source.reject(model);
      throw error;
    }
    await source.accept(model);
  }

  async #replace(model: FoundModel): Promise<void> {
    const { slot, log } = this.#parts;
    const { engine } = slot.require();
    for (const note of model.notes) log.warn(note);
    const before = engine.info().device;
    await engine.swap(model.folder);
    this.#answering = model.sha256;
    slot.loaded(engine, model);
    const { device, deviceNotes } = engine.info();
    logLoaded(log, engine.info());
    if (slot.require().lostDevice === before) {
      log.warn(`the model runs on ${device} and no longer on ${before}: ${deviceNotes.join('; ')}`);
    }
  }

  #failed(error: unknown, kind: { readonly isOffer?: boolean }): void {
    const code = codeOf(error);
    // The server ends: it needs no other model.
    if (code === 'closing' || this.#stopped.signal.aborted) return;
    this.#parts.slot.failed(code, kind);
    this.#parts.log.error({ code }, `the model was not replaced: ${reason(error)}`);
  }
}

/** The stable code of what has prevented a load. */
export function codeOf(error: unknown): ErrorCode {
  const cause = error instanceof Error && error.cause instanceof EngineError ? error.cause : error;
  const code = cause instanceof EngineError ? cause.code : '';
  return Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : 'load_failed';
}

/** Says in the log which model answers from now on, and which devices it could not use. */
export function logLoaded(log: Logger, info: ModelInfo): void {
  const { name, version, sha256, layout, device, threads, dir, deviceNotes, exactness, exactnessNote } = info;
  for (const note of deviceNotes) log.info(note);
  if (exactnessNote !== undefined) log[exactness === 'cannot be' ? 'warn' : 'info'](exactnessNote);
  log.info({ version, device, threads, layout, sha256: sha256.slice(0, 12), dir }, `model ${name} loaded`);
}
