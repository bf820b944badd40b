/** Processes of this machine. */
import { errorCode } from './system-error.ts';

/** Whether a process with this number runs, of this user or of another one. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
