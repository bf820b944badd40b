/** What SIGHUP does to a process that serves. */
import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';

export interface HangUpActions {
  /** Takes the settings and the model anew. */
  readonly reload: () => void;
  /** Ends the process in order. */
  readonly stop: () => void;
}

/**
 * SIGHUP reloads, as it does with other servers. It is also what the processes of a terminal get when somebody closes it,
 * and then a server that was started there ends with it. Windows has only the latter, and Node's own way with it is right.
 */
export function reloadOnHangUp({ reload, stop }: HangUpActions): void {
  if (process.platform === 'win32') return;
  const isOnTerminal = [0, 1, 2].some((fd) => isatty(fd)) && hasTerminal();
  process.on('SIGHUP', () => (isOnTerminal && !hasTerminal() ? stop() : reload()));
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
