/** Lines on their way to a descriptor that may be full, broken, or read by nobody. */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { errorCode } from './exclusive-file.ts';

/** While lines cannot be written, as many bytes of them are kept. */
const MAX_KEPT_BYTES = 2 ** 20;

/** POSIX has a pipe take so much at once or not at all: two processes at one pipe do not write into each other's lines. */
const MAX_WRITE_BYTES = 4096;

/** Between two tries to write what is kept: at first, and at most. */
const FIRST_PAUSE_MS = 10;
const MAX_PAUSE_MS = 1000;

/** How long the end of the process waits for a reader that is slow. */
const MAX_END_MS = 1000;

/** Writes bytes and returns how many were taken, at once: it throws the system error where none can be. */
export type Write = (bytes: Buffer | string) => number;

/**
 * Writes each line before the call returns. A line that cannot be written is kept and tried again, in its order, up to
 * 1 MiB; what comes then is lost and counted. Nothing ever throws or waits.
 */
export class LineWriter {
  readonly #write: Write;
  readonly #onRecovery: (lost: number) => void;
  #lost = 0;
  /** How many of them nobody was told of yet. Once one is lost so are the next, until all that is kept is written. */
  #untold = 0;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #retry: NodeJS.Timeout | undefined;

  /** @param onRecovery - Called when lines can be written again, with how many were lost, if any were. */
  constructor(write: Write, onRecovery: (lost: number) => void) {
    this.#write = write;
    this.#onRecovery = onRecovery;
  }

  /** How many lines were lost since the start of the process. */
  get lost(): number {
    return this.#lost;
  }

  /** @param line - With its line break. */
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
      // Whatever the reason is, a later try tells whether it has gone.
    }
    this.#keep(Buffer.from(line).subarray(written));
    this.#retryLater();
  }

  /** Writes what is kept, as far as it is taken: for the end of the process. A reader that reads is waited for. */
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

  /** Returns the code of the error that left something, and nothing when all is written. */
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

  /** As many of the lines that are kept as one write takes, and at least one. */
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
 * Returns what writes to stderr without ever waiting for who reads it, where the system can: of a pipe or a terminal on
 * Linux it opens a description of its own, since the one of descriptor 2 belongs to other processes, too, and any of them
 * may have it wait; a terminal waits anyway, as long as its output is stopped. Elsewhere Node has set a pipe not to wait,
 * except on Windows, where it cannot be.
 */
export function stderrWrite(): Write {
  const descriptor = openStderr();
  return (bytes) => (typeof bytes === 'string' ? writeSync(descriptor, bytes) : writeSync(descriptor, bytes));
}

function openStderr(): number {
  // Node opens it when it is named first. What goes wrong there is no reason to end.
  process.stderr.on('error', () => {});
  if (!fstatSync(2).isFIFO() && !isatty(2)) return 2;
  try {
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return 2;
  }
}
