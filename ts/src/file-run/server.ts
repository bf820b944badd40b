/** The state of one server, learned from its answers: how many requests it gets at once, and when it rests. */
import { decisionUrl } from '../network/decision-url.ts';
import { Pace } from './pace.ts';

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** A server with this many failures in a row does not fail by accident. */
const MANY_FAILURES = 3;

/**
 * A row on which all other servers failed waits for a failing server only if that one has answered within this time.
 */
const AWAY_MS = 60_000;

interface ServerOptions {
  readonly url: string;
  /** The largest number of requests at once. */
  readonly concurrency: number;
  /** The longest rest of the server, in milliseconds, even if it asks for a longer one. */
  readonly longestRestMs: number;
  /** Whether the server may get rows before its answers to the probes are compared. */
  readonly isCompared: boolean;
}

export class Server {
  readonly url: URL;
  readonly pace = new Pace();
  /** The number of requests that the server has now. */
  busy = 0;
  /** Whether the server's answers were compared with those of the others; it gets no row before. */
  isCompared: boolean;
  /** The message with which the server refuses every request; undefined once it has answered one. */
  refusal: string | undefined;
  /** The message of the server's last failure. */
  lastWords: string | undefined;
  readonly #options: ServerOptions;
  /** The number of requests that the server may have at once now: fewer than `concurrency` after failures. */
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

  /** Whether the server can take one more row now. */
  hasRoom(nowMs: number): boolean {
    return this.isCompared && this.#restsUntilMs <= nowMs && this.busy < this.#slots;
  }

  /** Whether the server is compared, not resting and without a failure since its last answer; it may be busy. */
  isWell(nowMs: number): boolean {
    return this.isCompared && this.#restsUntilMs <= nowMs && this.#failures === 0;
  }

  /** Whether a row may wait for this server. */
  isPresent(nowMs: number): boolean {
    return this.isCompared && (this.#failures === 0 || nowMs - this.#answeredMs < AWAY_MS);
  }

  /** Whether the server has rested again and again without an answer in between. */
  get isLongSilent(): boolean {
    return this.#failures >= MANY_FAILURES && this.#pauses >= MANY_FAILURES;
  }

  /**
   * Returns the time in which the server would answer its requests and one more of `bytes`, in milliseconds; a measure
   * by which servers are compared.
   */
  finishMs(bytes: number): number {
    return (this.busy + 1) * (this.pace.expectedMs(bytes) ?? 0);
  }

  /** Records a usable answer: the server gets one more request at once, and its next rest is shorter. */
  answered(): void {
    this.#failures = 0;
    this.refusal = undefined;
    this.#answeredMs = performance.now();
    this.#slots = Math.min(this.#options.concurrency, this.#slots + 1);
    this.#pauses = Math.max(0, this.#pauses - 1);
  }

  /** Records a failure and returns whether the server fails again and again. */
  failed(): boolean {
    this.#failures += 1;
    return this.#failures >= MANY_FAILURES;
  }

  /**
   * Records that another server was faster with a row that this one got first, and returns whether this one fails again
   * and again.
   */
  overtaken(bytes: number, tookMs: number): boolean {
    this.pace.tookAtLeast(bytes, tookMs);
    this.#slots = Math.max(1, Math.floor(this.#slots / 2));
    return this.failed();
  }

  /**
   * Lets the server rest for a time that grows from rest to rest, or for `retryAfterMs` if that is longer. All requests
   * that fail during one rest count as one reason for it. After the rest the server gets one request at a time, and
   * more as it answers.
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

  /** Returns true on the first call only, so that the server is named once. */
  claimNaming(): boolean {
    const isFirst = !this.#isNamed;
    this.#isNamed = true;
    return isFirst;
  }
}
