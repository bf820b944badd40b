/** What SIGHUP does to a process that serves. */
import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

/**
 * SIGHUP runs `reload`, as it does with other servers. It is also what the processes of a terminal get when somebody
 * closes it: a server that was started there ends then. On Windows it means that alone, and Node ends by itself.
 */
export function reloadOnHangUp(reload: () => void): void {
  if (process.platform === 'win32') return;
  const isOnTerminal = [0, 1, 2].some((fd) => isatty(fd)) && hasTerminal();
  const onHangUp = () => {
    if (!isOnTerminal || hasTerminal()) return reload();
    // The signal's own way: Node aborts when it exits and cannot give back a terminal that has gone.
    process.removeListener('SIGHUP', onHangUp);
    process.kill(process.pid, 'SIGHUP');
  };
  process.on('SIGHUP', onHangUp);
}

/** Whether the terminal that the process was started on is there. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
