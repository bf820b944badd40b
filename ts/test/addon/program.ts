/** Runs programs in processes of their own: the tests' programs and those of the system. */
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** The end of a process: its exit code or signal, and its output. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly args?: readonly string[];
  readonly cwd?: string;
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** The time after which a program that hangs is killed, so that the test fails instead. */
  readonly timeoutMs?: number;
  /** The text that the program reads from stdin; without it, stdin is closed. */
  readonly input?: string;
}

/** Runs a command and returns how it ended. */
export async function runCommand(command: string, options: RunOptions = {}): Promise<Ended> {
  const { args = [], cwd, env = {}, timeoutMs = 60_000, input } = options;
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<Pick<Ended, 'code' | 'signal'>>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  child.stdin?.end(input);
  const [stdout, stderr, end] = await Promise.all([
    text(child.stdout as Readable),
    text(child.stderr as Readable),
    ended,
  ]);
  return { ...end, stdout, stderr };
}

/** Runs `programs/<name>.ts` with Node and returns how it ended. */
export function runProgram(name: string, { args = [], ...options }: RunOptions = {}): Promise<Ended> {
  const file = fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
  return runCommand(process.execPath, { args: [file, ...args], ...options });
}
