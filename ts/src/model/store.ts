/** The stores that files are read from: a web server, a bucket, or this disk. */
import type { Readable } from 'node:stream';

/** An object that is being sent. The code that gets one must read its body to the end or destroy it. */
export interface Opened {
  readonly body: Readable;
  /** The length in bytes, where the sender states it. */
  readonly bytes?: number | undefined;
  /** A tag that changes when the object does; `undefined` where there is none. */
  readonly etag?: string | undefined;
}

export interface OpenOptions {
  /** The tag of the object that is known already: an object that still has this tag is `unchanged`. */
  readonly etag?: string | undefined;
  readonly signal: AbortSignal;
}

/** One object of a listing. */
export interface Listed {
  /** The path from the location on, with `/` between its parts. */
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
}

export interface Store {
  /**
   * Opens the location itself, or with `path` an object next to it (a file of a manifest) or under it (a file of a
   * folder).
   *
   * @throws SourceError when no object can be obtained.
   */
  open(path: string | undefined, options: OpenOptions): Promise<Opened | 'unchanged'>;
  /** Returns all objects under the location; absent where a store cannot list. */
  list?(signal: AbortSignal): Promise<Listed[]>;
}
