/** The output of a process, and its end. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Ended } from './addon/program.ts';

/** The longest time that a test waits for a line of a log. A busy machine takes a minute for what takes a second. */
const LOGGED_MS = 180_000;

/** The output of a process whose stdout and stderr are pipes. */
export class ProcessOutput {
  /** Resolves when the process has ended and all of its output has arrived. */
  readonly finished: Promise<Ended>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.finished = once(child, 'close').then(([code, signal]) => ({
      code,
      signal,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  /**
   * Returns the first match in everything that the process has written or will write to stderr.
   *
   * @throws Error when the process ends without it, or has not written it after `ms`.
   */
  async logged(pattern: RegExp, ms = LOGGED_MS): Promise<RegExpExecArray> {
    const found = new AbortController();
    const late = setTimeout(ms, true, { signal: found.signal }).catch(() => true);
    const isOver = Promise.race([this.finished.then(() => true), late]);
    try {
      for (;;) {
        const match = pattern.exec(this.#stderr);
        if (match) return match;
        const next = await Promise.race([once(this.#child.stderr ?? this.#child, 'data'), isOver]);
        if (next === true && !pattern.test(this.#stderr)) throw new Error(`${pattern} is not in: ${this.#stderr}`);
      }
    } finally {
      found.abort();
    }
  }
}
