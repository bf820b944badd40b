/** `svc` as a process of its own, as people start it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Ended } from './addon/program.ts';
import { ProcessOutput } from './process-output.ts';
import type { Ending } from './temporary-folder.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/svc.js', import.meta.url));

export interface SvcOptions {
  readonly cwd: string;
  /** Beside this process's own variables, of which those of `svc` are left out. */
  readonly env?: Readonly<Record<string, string>>;
  /** What it reads from stdin; closed when left out. */
  readonly input?: string;
  /** The descriptor that is its stderr, in place of a pipe to here. */
  readonly stderr?: number;
}

/** A started `svc`, killed when the test ends. */
export class SvcProcess {
  readonly finished: Promise<Ended>;
  /** Resolves with its exit code, whoever has not read all that it wrote. */
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

  /** The first match in what it wrote to stderr so far or will write. */
  logged(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#output.logged(pattern);
  }

  /** Where it listens. */
  async url(): Promise<string> {
    return (await this.logged(/listening on (http:[^"\s]+)/))[1] ?? '';
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Reads its log no more. */
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
