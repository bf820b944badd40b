/** Processes of this machine. */
import { readFileSync } from 'node:fs';
import { errorCode } from './system-error.ts';

/**
 * Whether a process with this number runs, of this user or of another one. A process that was killed, and that its
 * parent has not waited for, does not run.
 */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) !== 'EPERM') return false;
  }
  const [state = ''] = statusOf(pid);
  return state !== 'Z' && state !== 'X';
}

/**
 * Returns when a process began, in milliseconds since 1970, a few seconds at most beside the truth; undefined where the
 * system does not say. A process that began after something was written is not the one that wrote it.
 */
export function startMsOf(pid: number): number | undefined {
  // The state is the third field of the line, and the start the 22nd: hundredths of a second since the system began.
  const ticks = Number(statusOf(pid)[19]);
  const beganS = Number(/^btime (\d+)$/m.exec(textOf('/proc/stat'))?.[1]);
  return Number.isNaN(ticks + beganS) ? undefined : beganS * 1000 + ticks * 10;
}

/** Returns what Linux says of a process, from its state on; an empty list where there is nothing to read. */
function statusOf(pid: number): string[] {
  const line = textOf(`/proc/${pid}/stat`);
  // The name of the program, in parentheses, may hold spaces and parentheses of its own.
  return line === '' ? [] : line.slice(line.lastIndexOf(')') + 2).split(' ');
}

function textOf(path: string): string {
  try {
    return process.platform === 'linux' ? readFileSync(path, 'utf8') : '';
  } catch {
    return '';
  }
}
