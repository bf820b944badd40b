import { createHash, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

const SHOWN = '[secret]';

/** A key or password that cannot be printed by accident: text, JSON and logs all show `[secret]`. */
export class Secret {
  /** The place where the secret was set: `svc.json`, `SVC_API_KEY`, or the path of the file that holds it. */
  readonly origin: string;
  readonly #value: string;
  readonly #digest: Buffer;

  constructor(value: string, origin: string) {
    this.origin = origin;
    this.#value = value;
    this.#digest = sha256(value);
  }

  /** The number of characters, counted as people count them: one for each code point. */
  get length(): number {
    return [...this.#value].length;
  }

  /** Whether `candidate` is the secret. The time taken reveals nothing about either of them, lengths included. */
  matches(candidate: string | Uint8Array): boolean {
    return timingSafeEqual(this.#digest, sha256(candidate));
  }

  /**
   * Returns the first 12 hex digits of the sha256, which tell two secrets apart in a log without giving either away.
   */
  fingerprint(): string {
    return this.#digest.toString('hex').slice(0, 12);
  }

  /** Returns the secret itself. Every call is a place to look at in a review. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SHOWN;
  }

  toJSON(): string {
    return SHOWN;
  }

  [inspect.custom](): string {
    return SHOWN;
  }
}

function sha256(value: string | Uint8Array): Buffer {
  return createHash('sha256').update(value).digest();
}
