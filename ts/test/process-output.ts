/** What a process writes, and how it ends. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Ended } from './addon/program.ts';

/** The output of a process whose stdout and stderr are pipes. */
export class ProcessOutput {
  /** Resolves when the process has ended and all that it wrote is there. */
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

  /** The first match in what it wrote to stderr so far or will write. */
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
