/** Where a model comes from, as the start and the swap of models see it: types alone. */

/** What `/health` says of the source beside the model. */
export interface SourceStatus {
  /** Whether the source could not be reached when it was last asked. */
  readonly offline: boolean;
  /** The version that the source offers; absent where there is no remote source, or it was never reached. */
  readonly remoteVersion?: string | undefined;
  /** Whether the source is there, and what it offers cannot be taken. */
  readonly isRefused?: boolean | undefined;
}

/** A model folder on this disk. One from elsewhere is whole, checked, and has given the reference answers that it brings. */
export interface FoundModel extends SourceStatus {
  /** Absolute path of the folder. It stays as it is for as long as the process runs. */
  readonly folder: string;
  /** Where it came from, without user, password and query; `embedded` for the one that comes with the release. */
  readonly source: string;
  /** Whether it is another model than the wanted one, which could not be had. */
  readonly fallback: boolean;
  /** Hex sha256 of what was fetched: two with the same are the same model. Absent for folders, which may change. */
  readonly sha256?: string | undefined;
  /** Why it is not the newest or not the wanted one, one line each, for the log. */
  readonly notes: readonly string[];
}

/** Who is told when the source changes. */
export interface SourceListener {
  /**
   * A newer model is on this disk: loads it and lets it answer, when those before it in the line are done and `isWanted`
   * still holds.
   *
   * @returns whether it answers; it rejects when the model cannot be taken, which is then not offered again until it
   * changes.
   */
  found(model: FoundModel, isWanted: () => boolean): Promise<boolean>;
  /**
   * The source went away or came back, or offers another version, or one that cannot be taken. The model that answers is
   * still the same.
   */
  status(status: SourceStatus): void;
  /** Something for the log, one line: why the source gave nothing. */
  note(line: string): void;
}

/** Where the models of this process come from. */
export interface ModelSource {
  /** What the settings name, fit to be printed: without user, password and query. */
  readonly source: string;
  /**
   * The model to start with. With a good one on this disk it does not wait for the source; else it fetches, and gives the
   * embedded one when that fails.
   *
   * @throws Refusal when a folder or archive of this machine is missing or wrong, and when there is no embedded one.
   */
  find(signal: AbortSignal): Promise<FoundModel>;
  /**
   * The model that the source offers now, fetched if it is another one than before: for a reload that somebody asks for.
   *
   * @throws Refusal when there is none to be had, with the reason.
   */
  refresh(signal: AbortSignal): Promise<FoundModel>;
  /** Notes that `model` was loaded, answered its trial and now answers: the next start may begin with it. */
  accept(model: FoundModel): Promise<void>;
  /** Notes that `model` cannot be taken. */
  reject(model: FoundModel): Promise<void>;
  /**
   * What a start takes instead of `model`, which was rejected: the last good one, else the embedded one. Undefined where
   * nothing may answer in its place.
   *
   * @param why - What was wrong with `model`, for the log.
   * @throws Refusal when there is no embedded one.
   */
  instead(model: FoundModel, why: string): Promise<FoundModel | undefined>;
  /** Lets go of the models in the cache: another source has taken the place of this one. */
  close(): Promise<void>;
  /** What was learned of the source when it was last asked, for who tells it now. */
  report(): SourceStatus;
  /**
   * Looks for a newer model every `refresh_minutes`, and sooner while the wanted one is missing, until `signal` fires.
   *
   * @returns a promise that resolves when it looks no more, and never rejects.
   */
  watch(listener: SourceListener, signal: AbortSignal): Promise<void>;
}
