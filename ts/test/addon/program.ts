/** Programs of their own process, for what would take the tests down with it. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly args?: readonly string[];
  /** Variables beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** A program that hangs is killed, so that the test fails instead. */
  readonly timeoutMs?: number;
}

/** Runs `programs/<name>.ts` with Node and returns how it ended. */
export async function runProgram(
  name: string,
  { args = [], env = {}, timeoutMs = 60_000 }: RunOptions = {},
): Promise<Ended> {
  const file = fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<Pick<Ended, 'code' | 'signal'>>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  const [stdout, stderr, end] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { ...end, stdout, stderr };
}
