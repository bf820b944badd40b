/** The orderly end of a process that serves. */
import type { Logger } from 'pino';

/**
 * The time in which two SIGINT count as one: npm passes on a Ctrl-C that the terminal already sent to the whole group.
 */
const SAME_PRESS_MS = 250;

/**
 * Runs `stop` at the first signal, then ends the process with 0, or 1 when it fails. A second signal ends it at once.
 */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let firstMs: number | undefined;
  const onSignal = (signal: 'SIGINT' | 'SIGTERM', status: number) => {
    if (firstMs === undefined) {
      firstMs = performance.now();
      log.info(`${signal}: finishing the open requests; another signal stops at once`);
      stop().then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ err: error }, 'it did not end in order');
          process.exit(1);
        },
      );
    } else if (signal === 'SIGTERM' || performance.now() - firstMs > SAME_PRESS_MS) {
      process.exit(status);
    }
  };
  process.on('SIGINT', () => onSignal('SIGINT', 130));
  process.on('SIGTERM', () => onSignal('SIGTERM', 143));
}
