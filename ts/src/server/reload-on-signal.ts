/** The effect of SIGHUP on a process that serves. */
import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/**
 * Runs `reload` at SIGHUP, as other servers do. The processes of a terminal also get SIGHUP when the terminal is
 * closed: a server that was started there then ends. On Windows SIGHUP means only that, and Node ends by itself.
 */
export function reloadOnHangUp(reload: () => void): void {
  if (process.platform === 'win32') return;
  const isOnTerminal = [0, 1, 2].some((fd) => isatty(fd)) && hasTerminal();
  const onHangUp = () => {
    if (!isOnTerminal || hasTerminal()) return reload();
    // The signal itself ends the process: Node would abort at its exit, as it cannot restore a terminal that has gone.
    process.removeListener('SIGHUP', onHangUp);
    process.kill(process.pid, 'SIGHUP');
  };
  process.on('SIGHUP', onHangUp);
}

/** Whether the terminal that the process was started on is still there. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
