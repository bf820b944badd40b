/** `svc` as a process of its own, as people start it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const LAUNCHER = fileURLToPath(new URL('../../bin/svc.js', import.meta.url));

export interface SvcOptions {
  readonly cwd: string;
  /** Beside this process's own variables, of which those of `svc` are left out. */
  readonly env?: Readonly<Record<string, string>>;
  /** What it reads from stdin; closed when left out. */
  readonly input?: string;
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A started `svc`, killed when the test ends. */
export class SvcProcess {
  readonly finished: Promise<Finished>;
  readonly #child;
  #stdout = '';
  #stderr = '';

  constructor(test: TestContext, args: readonly string[], { cwd, env, input }: SvcOptions) {
    const own = Object.entries(process.env).filter(([name]) => !/^(SVC_|NODE_TEST|NO_COLOR$|FORCE_COLOR$)/.test(name));
    const child = spawn(process.execPath, [LAUNCHER, ...args], {
      cwd,
      env: { ...Object.fromEntries(own), ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    child.stdin?.end(input);
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
    test.after(() => child.kill('SIGKILL'));
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

  /** Where it listens. */
  async url(): Promise<string> {
    return (await this.logged(/listening on (http:[^"\s]+)/))[1] ?? '';
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
}

/** Runs `svc` to its end. */
export function runSvc(test: TestContext, args: readonly string[], options: SvcOptions): Promise<Finished> {
  return new SvcProcess(test, args, options).finished;
}
