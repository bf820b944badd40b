/** Lines on their way to a descriptor that may be full, broken, or without a reader. */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { errorCode } from '../files/system-error.ts';

/** The most bytes of lines that are kept while lines cannot be written. */
const MAX_KEPT_BYTES = 2 ** 20;

/**
 * The most bytes of one write. POSIX has a pipe take so many at once or not at all, so two processes at one pipe do not
 * write into each other's lines.
 */
const MAX_WRITE_BYTES = 4096;

/** The pause between two tries to write the kept lines: the first one, and the longest one. */
const FIRST_PAUSE_MS = 10;
const MAX_PAUSE_MS = 1000;

/** How long the end of the process waits for a reader that is slow. */
const MAX_END_MS = 1000;

/**
 * Writes bytes without waiting, and returns how many were taken.
 *
 * @throws The system error when none can be taken.
 */
export type Write = (bytes: Buffer | string) => number;

/**
 * Writes each line before the call returns. A line that cannot be written is kept and tried again, in its order, up to
 * 1 MiB; lines beyond that are lost and counted. No call throws, and only `finish` waits.
 */
export class LineWriter {
  readonly #write: Write;
  readonly #onRecovery: (lost: number) => void;
  #lost = 0;
  /**
   * How many lost lines are not reported yet. After one is lost the next are lost too, until all kept lines are
   * written.
   */
  #untold = 0;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #retry: NodeJS.Timeout | undefined;

  /** @param onRecovery - Called when lines can be written again, with the number of lost lines, if any were lost. */
  constructor(write: Write, onRecovery: (lost: number) => void) {
    this.#write = write;
    this.#onRecovery = onRecovery;
  }

  /** The number of lines that were lost since the start of the process. */
  get lost(): number {
    return this.#lost;
  }

  /** @param line - The line with its line break. */
  write(line: string): void {
    if (this.#kept.length > 0) {
      this.#keep(Buffer.from(line));
      return;
    }
    let written = 0;
    try {
      written = this.#write(line);
      if (written === Buffer.byteLength(line)) return;
    } catch {
      // The reason does not matter: a later try shows whether it has gone.
    }
    this.#keep(Buffer.from(line).subarray(written));
    this.#retryLater();
  }

  /** Writes the kept lines, as far as they are taken: for the end of the process. It waits for a slow reader. */
  finish(): void {
    const untilMs = performance.now() + MAX_END_MS;
    const clock = new Int32Array(new SharedArrayBuffer(4));
    while (this.#writeKept() === 'EAGAIN' && performance.now() < untilMs) Atomics.wait(clock, 0, 0, FIRST_PAUSE_MS);
  }

  #keep(bytes: Buffer): void {
    if (this.#untold > 0 || this.#keptBytes + bytes.length > MAX_KEPT_BYTES) {
      this.#lost += 1;
      this.#untold += 1;
      return;
    }
    this.#kept.push(bytes);
    this.#keptBytes += bytes.length;
  }

  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      const before = this.#keptBytes;
      if (this.#writeKept() === undefined) return;
      this.#pauseMs = this.#keptBytes < before ? FIRST_PAUSE_MS : Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
      this.#retryLater();
    }, this.#pauseMs).unref();
  }

  /**
   * Writes the kept lines. Returns the code of the error that left some of them, and undefined when all are written.
   */
  #writeKept(): string | undefined {
    while (this.#kept.length > 0) {
      try {
        const written = this.#write(Buffer.concat(this.#firstLines()));
        if (written === 0) return 'EAGAIN';
        this.#remove(written);
      } catch (error) {
        return errorCode(error);
      }
    }
    this.#pauseMs = FIRST_PAUSE_MS;
    const lost = this.#untold;
    this.#untold = 0;
    if (lost > 0) this.#onRecovery(lost);
    return undefined;
  }

  /** Returns as many of the kept lines as one write takes, and at least one. */
  #firstLines(): Buffer[] {
    let bytes = 0;
    const end = this.#kept.findIndex((line) => {
      bytes += line.length;
      return bytes > MAX_WRITE_BYTES;
    });
    return this.#kept.slice(0, end < 0 ? this.#kept.length : Math.max(end, 1));
  }

  #remove(bytes: number): void {
    this.#keptBytes -= bytes;
    let left = bytes;
    while (left > 0) {
      const [first = Buffer.alloc(0)] = this.#kept;
      if (first.length > left) {
        this.#kept[0] = first.subarray(left);
        return;
      }
      left -= first.length;
      this.#kept.shift();
    }
  }
}

/**
 * Returns a function that writes to stderr without ever waiting for its reader, where the system can do that. For a
 * pipe or a terminal on Linux it opens an open file description of its own, since that of descriptor 2 is shared with
 * other processes, any of which may set it to wait; a terminal still waits while its output is stopped. Elsewhere Node
 * has set a pipe not to wait, except on Windows, where a pipe cannot be set so.
 */
export function stderrWrite(): Write {
  const descriptor = openStderr();
  return (bytes) => (typeof bytes === 'string' ? writeSync(descriptor, bytes) : writeSync(descriptor, bytes));
}

function openStderr(): number {
  // Node opens stderr at the first use of `process.stderr`. An error of that stream is no reason to end.
  process.stderr.on('error', () => {});
  if (!fstatSync(2).isFIFO() && !isatty(2)) return 2;
  try {
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return 2;
  }
}
