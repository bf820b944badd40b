/** The expected time of a server for an answer, estimated from the times of its last answers. */

/** The fixed cost of a request besides its bytes, expressed in bytes. */
const REQUEST_BYTES = 512;

/** The weight of the last answer in the moving average. */
const LAST_SHARE = 0.2;

/** The timeout of an answer, as a multiple of its expected time. */
const PATIENCE = 20;
const SHORTEST_TIMEOUT_MS = 10_000;
/** This is longer than any server lets a request wait and run. */
const LONGEST_TIMEOUT_MS = 180_000;

/** Another server takes over a request once it could have answered it this many times since the request was sent. */
const TAKEOVER = 3;
const SHORTEST_TAKEOVER_MS = 100;
/** The takeover time of a server that has not answered yet. */
const FIRST_TAKEOVER_MS = 2000;

export class Pace {
  #msPerByte: number | undefined;

  /**
   * Returns the expected time of an answer to a request of `bytes`, in milliseconds; undefined before the first answer.
   */
  expectedMs(bytes: number): number | undefined {
    return this.#msPerByte === undefined ? undefined : this.#msPerByte * (bytes + REQUEST_BYTES);
  }

  answered(bytes: number, tookMs: number): void {
    const last = tookMs / (bytes + REQUEST_BYTES);
    this.#msPerByte ??= last;
    this.#msPerByte += LAST_SHARE * (last - this.#msPerByte);
  }

  /** Records that a request of `bytes` has taken at least `ms` milliseconds, without an answer. */
  tookAtLeast(bytes: number, ms: number): void {
    if (ms > (this.expectedMs(bytes) ?? 0)) this.answered(bytes, ms);
  }

  /**
   * Returns the timeout of a request of `bytes`, in milliseconds. The first answer of a server may take long, since the
   * server may have to load a model first; a request that has timed out `cuts` times may cost more than its bytes
   * suggest, so each timeout doubles the next one.
   */
  timeoutMs(bytes: number, cuts: number): number {
    const expectedMs = this.expectedMs(bytes) ?? LONGEST_TIMEOUT_MS;
    return Math.min(LONGEST_TIMEOUT_MS, Math.max(SHORTEST_TIMEOUT_MS, PATIENCE * expectedMs) * 2 ** cuts);
  }

  /**
   * Returns the time, in milliseconds, that another server may hold a request of `bytes` before this idle one is asked
   * as well.
   */
  takeoverMs(bytes: number): number {
    const expectedMs = this.expectedMs(bytes);
    return expectedMs === undefined ? FIRST_TAKEOVER_MS : Math.max(SHORTEST_TAKEOVER_MS, TAKEOVER * expectedMs);
  }
}
