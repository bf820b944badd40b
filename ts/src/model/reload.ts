/** Replaces the model while requests go on: when a reload is asked for, and when the source has a newer model. */
import type { Logger } from 'pino';
import { EngineError, type ModelInfo } from '../engine/contract.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';
import { Refusal } from '../refusal.ts';
import type { LoadedEngine } from './load.ts';
import type { EngineSlot } from './slot.ts';
import type { FoundModel, ModelSource, SourceListener } from './source.ts';
import { reason } from './source-error.ts';

interface ReloaderParts {
  readonly slot: EngineSlot;
  /** The model to start with. */
  readonly loaded: Promise<LoadedEngine>;
  /**
   * Reads the settings again and returns the source that they name now: `before`, unless they name another.
   *
   * @throws Refusal when a setting is wrong.
   */
  readonly open: (before: ModelSource) => Promise<ModelSource>;
  /**
   * Asks a model folder for its own reference answers while the current model goes on answering. The trial ends when
   * `signal` fires.
   *
   * @throws an error that says what is wrong with the model.
   */
  readonly prove: (folder: string, signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  /** Whether an accelerator is wanted: the log then says why one was passed over. */
  readonly wantsAccelerator?: boolean;
}

/** A reload that was asked for. */
export interface AskedReload {
  /** Whether the reload begins only after the one that is under way has ended. */
  readonly isQueued: boolean;
  /** Resolves when the model answers that the settings and their source then name; rejects when that fails. */
  readonly done: Promise<void>;
}

/** A reload that has begun. */
interface RunningReload {
  /** Ends the fetching and the trial. */
  readonly stop: AbortController;
  /** The source of the reload, known once the settings are read. */
  source?: ModelSource;
}

/** The loads of models, one at a time. When a load fails, the current model goes on answering. */
export class Reloader {
  readonly #parts: ReloaderParts;
  readonly #stopped = new AbortController();
  #source: Promise<ModelSource>;
  #watching = new AbortController();
  #latest: Promise<void>;
  /** The digest of the model that answers, where it was fetched. */
  #answering: string | undefined;
  /** The reload that has not begun yet. */
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
   * @throws Refusal when that model cannot be loaded.
   */
  async start(): Promise<void> {
    const { slot, loaded, log } = this.#parts;
    const { engine, model, source } = await loaded;
    for (const note of model.notes) log.warn(note);
    slot.loaded(engine, model);
    this.#logLoaded(engine.info());
    this.#watch(source);
  }

  /** Ends the fetching and the trial of a running reload, and stops watching the source. */
  stop(): void {
    this.#stopped.abort();
    this.#watching.abort();
    this.#running?.stop.abort();
  }

  /**
   * Loads the model that the settings and their source name. The reload begins at once, or after the one that is under
   * way: all calls in the meantime get the same reload. Failures are also in the log.
   */
  reload(): AskedReload {
    const running = this.#running;
    this.#next ??= this.#enqueue(() => this.#reloadNow());
    // The running reload may be for a model that the settings no longer name, from a slow source.
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
      // The health record is about the source of the model that answers.
      if (source === before) this.#parts.slot.sourceIs(source.report());
      else await source.close();
      throw error;
    }
    if (source === before) return;
    this.#watch(source);
    await before.close();
  }

  /** Ends a reload whose source the settings no longer name. A model that is already being loaded is still loaded. */
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

  /** Watches `source` in place of the previous source. */
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
            // Meanwhile another source may have taken this one's place, or a reload may have found a newer model.
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

  /** Runs `load` when the load before it is done, and returns its result. */
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

  /** Replaces the model and tells its source the outcome, which a source notes itself for the models that it offers. */
  async #take(source: ModelSource, model: FoundModel, signal: AbortSignal): Promise<void> {
    try {
      // A fetched model has been tried by its source; a folder may have changed since the last time.
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
    this.#logLoaded(engine.info());
    if (slot.require().lostDevice === before) {
      log.warn(`the model runs on ${device} and no longer on ${before}: ${deviceNotes.join('; ')}`);
    }
  }

  /** Logs which model answers from now on, and which devices it could not use. */
  #logLoaded({ name, version, sha256, layout, device, threads, dir, ...notes }: ModelInfo): void {
    const { deviceNotes, exactness, exactnessNote } = notes;
    const { log, wantsAccelerator = false } = this.#parts;
    // Most machines have no accelerator and need none, so its absence is only worth a line where one is wanted.
    for (const note of deviceNotes) log[wantsAccelerator ? 'info' : 'debug'](note);
    if (exactnessNote !== undefined) log[exactness === 'cannot be' ? 'warn' : 'info'](exactnessNote);
    log.info({ version, device, threads, layout, sha256: sha256.slice(0, 12), dir }, `model ${name} loaded`);
  }

  #failed(error: unknown, kind: { readonly isOffer?: boolean }): void {
    const code = codeOf(error);
    // The server is ending, so it needs no other model.
    if (code === 'closing' || this.#stopped.signal.aborted) return;
    this.#parts.slot.failed(code, kind);
    this.#parts.log.error({ code }, `the model was not replaced: ${reason(error)}`);
  }
}

/** Returns the stable code of the error that prevented a load. */
export function codeOf(error: unknown): ErrorCode {
  const cause = error instanceof Error && error.cause instanceof EngineError ? error.cause : error;
  const code = cause instanceof EngineError ? cause.code : '';
  return Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : 'load_failed';
}
