/** Where files are read from: a web server, a bucket, or this disk. */
import type { Readable } from 'node:stream';

/** An object that is being sent. Whoever has it reads it to its end or destroys it. */
export interface Opened {
  readonly body: Readable;
  /** Its length, where the sender says so. */
  readonly bytes?: number | undefined;
  /** What changes when the object does; `undefined` where there is no such thing. */
  readonly etag?: string | undefined;
}

export interface OpenOptions {
  /** With the tag of what is known already, an object that still has it is `unchanged`. */
  readonly etag?: string | undefined;
  readonly signal: AbortSignal;
}

/** One object of a listing. */
export interface Listed {
  /** From the location on, with `/` between its parts. */
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
}

export interface Store {
  /**
   * Opens the location itself, or with `path` an object beside it (a file of a manifest) or under it (of a folder).
   *
   * @throws SourceError when there is nothing to be had.
   */
  open(path: string | undefined, options: OpenOptions): Promise<Opened | 'unchanged'>;
  /** All objects under the location; absent where a store cannot list. */
  list?(signal: AbortSignal): Promise<Listed[]>;
}
