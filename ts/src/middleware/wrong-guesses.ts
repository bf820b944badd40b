/**
 * Slows down those who guess credentials: a caller with many wrong ones in a minute is told so a second late.
 * Whoever has the right one never waits, however many wrong ones came from the same address before.
 */
import type { Socket } from 'node:net';
import type { RequestContext } from './request.ts';

const WINDOW_MS = 60_000;
/** The wrong credential, counted from 1 within the window, from which on answers are late. */
const FIRST_LATE = 20;
const LATE_MS = 1000;
/** The address that has been quiet for longest is forgotten first. */
const MAX_ADDRESSES = 10_000;

export class WrongGuesses {
  readonly #now: () => number;
  /** When the latest wrong ones came from an address, oldest first, `FIRST_LATE - 1` at most; the quiet ones in front. */
  readonly #times = new Map<string, number[]>();
  /** Connections on which a late answer waits: as many as are open, one answer each, bound what is held. */
  readonly #waiting = new WeakSet<Socket>();

  /** @param now - Monotonic milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Counts a credential that was given and is wrong, and resolves when it may be answered. A request without any has
   * guessed nothing and is not to be counted. The address is that of the connection: a header can name any. Who guesses on
   * before the late answer has come, on the same connection, loses it.
   */
  async note({ req, res }: Pick<RequestContext, 'req' | 'res'>): Promise<void> {
    const { socket } = req;
    if (!this.#isLate(socket.remoteAddress ?? '')) return;
    if (this.#waiting.has(socket)) {
      socket.destroy();
      return;
    }
    this.#waiting.add(socket);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LATE_MS);
      // Nobody waits for what nobody reads.
      res.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.#waiting.delete(socket);
  }

  #isLate(address: string): boolean {
    const nowMs = this.#now();
    const times = this.#times.get(address) ?? [];
    const isLate = times.length === FIRST_LATE - 1 && nowMs - (times[0] ?? 0) < WINDOW_MS;
    times.push(nowMs);
    if (times.length >= FIRST_LATE) times.shift();
    this.#times.delete(address);
    this.#times.set(address, times);
    for (const quietest of this.#times.keys()) {
      if (this.#times.size <= MAX_ADDRESSES) break;
      this.#times.delete(quietest);
    }
    return isLate;
  }
}
