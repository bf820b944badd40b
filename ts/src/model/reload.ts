/** Replaces the model while requests go on: when somebody asks for it, and when its source has a newer one. */
import type { Logger } from 'pino';
import { EngineError, type ModelInfo } from '../engine.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';
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
  readonly log: Logger;
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
  }

  /**
   * Loads the model that the settings and their source name now. It resolves when that answers; a second call before the
   * first has begun is the same.
   *
   * @throws what has prevented it. It is in the log, too.
   */
  reload(): Promise<void> {
    this.#next ??= this.#enqueue(async () => {
      this.#next = undefined;
      const before = await this.#source;
      const source = await this.#parts.open(before);
      try {
        await this.#take(source, await source.refresh(this.#stopped.signal));
      } catch (error) {
        if (source !== before) await source.close();
        throw error;
      }
      if (source === before) return;
      this.#watch(source);
      await before.close();
    });
    return this.#next;
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
      found: (model) =>
        this.#enqueue(
          async () => {
            // Another source has taken its place meanwhile, or a reload has found the same.
            const isAnswering = model.sha256 !== undefined && model.sha256 === this.#answering;
            if (!signal.aborted && !isAnswering) await this.#replace(model);
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
  #enqueue(load: () => Promise<void>, kind: { readonly isOffer?: boolean } = {}): Promise<void> {
    const done = this.#latest.then(load).catch((error: unknown) => {
      this.#failed(error, kind);
      throw error;
    });
    this.#latest = done.catch(() => {});
    return done;
  }

  /** Replaces the model and tells its source how that went, as a source does itself of what it offers. */
  async #take(source: ModelSource, model: FoundModel): Promise<void> {
    try {
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
    await engine.swap(model.folder);
    this.#answering = model.sha256;
    slot.loaded(engine, model);
    logLoaded(log, engine.info());
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
  const { name, version, sha256, layout, device, threads, dir, deviceNotes } = info;
  for (const note of deviceNotes) log.info(note);
  log.info({ version, device, threads, layout, sha256: sha256.slice(0, 12), dir }, `model ${name} loaded`);
}
