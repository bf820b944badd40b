/** The output of a process, and its end. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Ended } from './addon/program.ts';

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

  /** Returns the first match in everything that the process has written or will write to stderr. */
  async logged(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#stderr);
      if (match) return match;
      const isOver = await Promise.race([
        once(this.#child.stderr ?? this.#child, 'data'),
        this.finished.then(() => true),
      ]);
      if (isOver === true && !pattern.test(this.#stderr)) throw new Error(`${pattern} is not in: ${this.#stderr}`);
    }
  }
}
