/**
 * A brake on guessing credentials: a caller with many wrong ones in a minute is told so a second late. A caller with
 * the right one never waits, however many wrong ones came from the same address before.
 */
import type { Socket } from 'node:net';
import type { RequestContext } from './request.ts';

const WINDOW_MS = 60_000;
/** The number of the first wrong credential in the window, counted from 1, whose answer is late. */
const FIRST_LATE = 20;
const LATE_MS = 1000;
/** The largest number of remembered addresses; the address that has been quiet for longest is forgotten first. */
const MAX_ADDRESSES = 10_000;

export class WrongGuesses {
  readonly #now: () => number;
  /**
   * The times of the latest wrong credentials of each address, oldest first, at most `FIRST_LATE - 1`; the address that
   * has been quiet for longest stands first.
   */
  readonly #times = new Map<string, number[]>();
  /**
   * The connections on which a late answer waits. Each has at most one, so the number of open connections bounds them.
   */
  readonly #waiting = new WeakSet<Socket>();

  /** @param now - Monotonic milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Counts a wrong credential, and resolves when it may be answered. A request without a credential guesses nothing and
   * must not be counted. The address is that of the connection, since a header could name any. A caller that sends
   * another guess on the same connection before the late answer has come loses the connection.
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
      // Once the connection is closed, the answer has no reader.
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
