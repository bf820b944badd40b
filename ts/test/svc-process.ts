/** Runs `svc` as a process of its own, in the way a user starts it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Ended } from './addon/program.ts';
import { ProcessOutput } from './process-output.ts';
import type { Ending } from './temporary-folder.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/svc.js', import.meta.url));

export interface SvcOptions {
  readonly cwd: string;
  /** Environment variables in addition to those of this process, from which the variables of `svc` are removed. */
  readonly env?: Readonly<Record<string, string>>;
  /** The text that the process reads from stdin; without it, stdin is closed. */
  readonly input?: string;
  /** The descriptor that becomes its stderr, in place of a pipe to this process. */
  readonly stderr?: number;
}

/** A running `svc`, which is killed when the test ends. */
export class SvcProcess {
  readonly finished: Promise<Ended>;
  /** Resolves with the exit code, even if the output has not been read to its end. */
  readonly exited: Promise<number | null>;
  readonly #child;
  readonly #output: ProcessOutput;

  constructor(test: Ending, args: readonly string[], { cwd, env, input, stderr }: SvcOptions) {
    const own = Object.entries(process.env).filter(([name]) => !/^(SVC_|NODE_TEST|NO_COLOR$|FORCE_COLOR$)/.test(name));
    const child = spawn(process.execPath, [LAUNCHER, ...args], {
      cwd,
      env: { ...Object.fromEntries(own), ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', stderr ?? 'pipe'],
    });
    this.#child = child;
    this.exited = once(child, 'exit').then(([code]) => code);
    child.stdin?.end(input);
    this.#output = new ProcessOutput(child);
    this.finished = this.#output.finished;
    test.after(() => child.kill('SIGKILL'));
  }

  /** Returns the first match in everything that the process has written or will write to stderr. */
  logged(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#output.logged(pattern);
  }

  /** Returns the URL at which the process listens. */
  async url(): Promise<string> {
    return (await this.logged(/listening on (http:[^"\s]+)/))[1] ?? '';
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Stops reading the log. */
  holdLog(): void {
    this.#child.stderr?.pause();
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
}

/** Runs `svc` to its end. */
export function runSvc(test: Ending, args: readonly string[], options: SvcOptions): Promise<Ended> {
  return new SvcProcess(test, args, options).finished;
}
