/** The source of a model, as the start and the swap of models see it. This file has only types. */

/** The state of the source, which `/health` shows in addition to the model. */
export interface SourceStatus {
  /** Whether the source could not be reached when it was last asked. */
  readonly offline: boolean;
  /** The version that the source offers; absent where there is no remote source, or it was never reached. */
  readonly remoteVersion?: string | undefined;
  /** Whether the source was reached, but the model that it offers cannot be taken. */
  readonly isRefused?: boolean | undefined;
}

/**
 * A model folder on this disk. A model from elsewhere is complete and checked, and has given the reference answers that
 * come with it.
 */
export interface FoundModel extends SourceStatus {
  /** Absolute path of the folder. A folder of the cache is not removed while the process uses it. */
  readonly folder: string;
  /** The place that the model came from, without user, password and query; `embedded` for the release's own model. */
  readonly source: string;
  /** Whether this is another model than the wanted one, which could not be obtained. */
  readonly fallback: boolean;
  /**
   * Hex sha256 of the archive or the manifest: two models with the same digest are the same model. Absent for folders
   * of this machine, which may change.
   */
  readonly sha256?: string | undefined;
  /** Lines for the log, such as why the model is not the newest or not the wanted one. */
  readonly notes: readonly string[];
}

/** The listener that is told when the source changes. */
export interface SourceListener {
  /**
   * Takes a newer model that is now on this disk: loads it and lets it answer once the loads before it are done, if
   * `isWanted` still holds then.
   *
   * @returns whether the model answers. The promise rejects when the model cannot be taken; the model is then not
   * offered again until it changes.
   */
  found(model: FoundModel, isWanted: () => boolean): Promise<boolean>;
  /**
   * Takes note that the source went away or came back, or offers another version or a model that cannot be taken. The
   * model that answers stays the same.
   */
  status(status: SourceStatus): void;
  /** Takes one line for the log: why the source gave no model. */
  note(line: string): void;
}

/** The source of this process's models. */
export interface ModelSource {
  /** The source as the settings name it, fit to be printed: without user, password and query. */
  readonly source: string;
  /**
   * Returns the model to start with. If a good model of a remote source is in the cache, the source is not asked first;
   * otherwise the model is fetched, and the embedded model is returned when that fails.
   *
   * @throws Refusal when a folder or archive of this machine is missing or wrong, and when there is no embedded model.
   */
  find(signal: AbortSignal): Promise<FoundModel>;
  /**
   * Returns the model that the source offers now, fetched if it is another one than before: for a reload that was asked
   * for.
   *
   * @throws Refusal when no model can be obtained, with the reason.
   */
  refresh(signal: AbortSignal): Promise<FoundModel>;
  /** Notes that `model` was loaded, passed its trial and now answers: the next start may begin with it. */
  accept(model: FoundModel): Promise<void>;
  /** Notes that `model` cannot be taken. */
  reject(model: FoundModel): Promise<void>;
  /**
   * Returns the model that a start takes instead of `model`, which was rejected: the last good one, else the embedded
   * one; undefined where no other model may answer in its place.
   *
   * @param why - The fault of `model`, for the log.
   * @throws Refusal when there is no embedded model.
   */
  instead(model: FoundModel, why: string): Promise<FoundModel | undefined>;
  /** Releases the models in the cache: another source has taken the place of this one. */
  close(): Promise<void>;
  /** Returns the state of the source when it was last asked. The caller reports it, so `watch` does not repeat it. */
  report(): SourceStatus;
  /**
   * Looks for a newer model every `refresh_minutes`, and sooner while the wanted one is missing, until `signal` fires.
   *
   * @returns a promise that resolves when the source is no longer looked at, and never rejects.
   */
  watch(listener: SourceListener, signal: AbortSignal): Promise<void>;
}
