/** One server as its answers show it: how many requests it gets at once, and when it is let alone. */
import { decisionUrl } from '../decision-url.ts';
import { Pace } from './pace.ts';

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** So many failures one after the other are no accident. */
const MANY_FAILURES = 3;

/** A server that has not answered for so long is not waited for by a row that all others failed on. */
const AWAY_MS = 60_000;

export interface ServerOptions {
  readonly url: string;
  /** Requests at once at most. */
  readonly concurrency: number;
  /** The longest that it is let alone, whatever it asks for. */
  readonly longestRestMs: number;
  /** Whether it may be asked rows at once. */
  readonly isCompared: boolean;
}

export class Server {
  readonly url: URL;
  readonly pace = new Pace();
  /** Requests that it has now. */
  busy = 0;
  /** Whether its answers were compared with those of the others; it gets no row before. */
  isCompared: boolean;
  /** What it refuses all requests with; undefined once it has answered one. */
  refusal: string | undefined;
  /** What it said when it failed last. */
  lastWords: string | undefined;
  readonly #options: ServerOptions;
  /** Requests that it may have at once now: fewer than `concurrency` after failures. */
  #slots: number;
  #failures = 0;
  #pauses = 0;
  #restsUntilMs = 0;
  #answeredMs = performance.now();
  #isNamed = false;

  constructor(options: ServerOptions) {
    this.url = decisionUrl(options.url);
    this.isCompared = options.isCompared;
    this.#options = options;
    this.#slots = options.concurrency;
  }

  get restsUntilMs(): number {
    return this.#restsUntilMs;
  }

  /** Whether it takes one more row. */
  hasRoom(nowMs: number): boolean {
    return this.isCompared && this.#restsUntilMs <= nowMs && this.busy < this.#slots;
  }

  /** Whether nothing speaks against asking it, but for what it has to do already. */
  isWell(nowMs: number): boolean {
    return this.isCompared && this.#restsUntilMs <= nowMs && this.#failures === 0;
  }

  /** Whether a row may wait for it. */
  isPresent(nowMs: number): boolean {
    return this.isCompared && (this.#failures === 0 || nowMs - this.#answeredMs < AWAY_MS);
  }

  /** Whether it has rested again and again without an answer in between. */
  get isLongSilent(): boolean {
    return this.#failures >= MANY_FAILURES && this.#pauses >= MANY_FAILURES;
  }

  /** When it would have answered one more row of `bytes`, as a measure to compare servers by. */
  finishMs(bytes: number): number {
    return (this.busy + 1) * (this.pace.expectedMs(bytes) ?? 0);
  }

  /** It has answered in a way that can be used: it gets more at once, and rests less the next time. */
  answered(): void {
    this.#failures = 0;
    this.refusal = undefined;
    this.#answeredMs = performance.now();
    this.#slots = Math.min(this.#options.concurrency, this.#slots + 1);
    this.#pauses = Math.max(0, this.#pauses - 1);
  }

  /** It has failed; the result tells whether it does so again and again. */
  failed(): boolean {
    this.#failures += 1;
    return this.#failures >= MANY_FAILURES;
  }

  /** Another has answered before it what it got first. */
  overtaken(bytes: number, tookMs: number): boolean {
    this.pace.tookAtLeast(bytes, tookMs);
    this.#slots = Math.max(1, Math.floor(this.#slots / 2));
    return this.failed();
  }

  /**
   * Lets it alone for a time that grows, and for what it asks for where that is longer. All requests that fail at the same
   * time are one reason for one pause. After it the server gets one request, and more as it answers.
   */
  rest(retryAfterMs = 0): void {
    const now = performance.now();
    const longest = this.#options.longestRestMs;
    this.#slots = 1;
    if (this.#restsUntilMs <= now) {
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#pauses) * (0.5 + Math.random() / 2);
      this.#pauses += 1;
      this.#restsUntilMs = now + Math.min(longest, pauseMs);
    }
    this.#restsUntilMs = Math.max(this.#restsUntilMs, now + Math.min(longest, retryAfterMs));
  }

  /** True the first time. */
  claimNaming(): boolean {
    const isFirst = !this.#isNamed;
    this.#isNamed = true;
    return isFirst;
  }
}
