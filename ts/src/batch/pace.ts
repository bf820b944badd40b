/** How long a server takes for an answer, from what its last answers took. */

/** What a request costs beside its bytes, counted as bytes. */
const REQUEST_BYTES = 512;

/** How much the last answer counts. */
const LAST_SHARE = 0.2;

/** An answer may take so many times what it should before it is no longer waited for. */
const PATIENCE = 20;
const SHORTEST_TIMEOUT_MS = 10_000;
/** Longer than any server lets a request wait and run. */
const LONGEST_TIMEOUT_MS = 180_000;

/** Another server takes over what it would have answered so many times in the meantime. */
const TAKEOVER = 3;
const SHORTEST_TAKEOVER_MS = 100;
/** Of a server that has not answered yet. */
const FIRST_TAKEOVER_MS = 2000;

export class Pace {
  #msPerByte: number | undefined;

  /** What an answer to `bytes` should take; undefined when there was none yet. */
  expectedMs(bytes: number): number | undefined {
    return this.#msPerByte === undefined ? undefined : this.#msPerByte * (bytes + REQUEST_BYTES);
  }

  answered(bytes: number, tookMs: number): void {
    const last = tookMs / (bytes + REQUEST_BYTES);
    this.#msPerByte ??= last;
    this.#msPerByte += LAST_SHARE * (last - this.#msPerByte);
  }

  /** It has taken so long already, without an answer. */
  tookAtLeast(bytes: number, ms: number): void {
    if (ms > (this.expectedMs(bytes) ?? 0)) this.answered(bytes, ms);
  }

  /**
   * How long an answer to `bytes` is waited for. The first answer of a server may take long, since a model may have to be
   * read for it; and what was cut `cuts` times before may be larger than it looks.
   */
  timeoutMs(bytes: number, cuts: number): number {
    const expectedMs = this.expectedMs(bytes) ?? LONGEST_TIMEOUT_MS;
    return Math.min(LONGEST_TIMEOUT_MS, Math.max(SHORTEST_TIMEOUT_MS, PATIENCE * expectedMs) * 2 ** cuts);
  }

  /** How long another server may have `bytes` before this one, which is idle, is asked too. */
  takeoverMs(bytes: number): number {
    const expectedMs = this.expectedMs(bytes);
    return expectedMs === undefined ? FIRST_TAKEOVER_MS : Math.max(SHORTEST_TAKEOVER_MS, TAKEOVER * expectedMs);
  }
}
