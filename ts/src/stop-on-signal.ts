/** How a process that serves ends when it is told to. */
import type { Logger } from 'pino';

/** npm passes on the Ctrl-C that the terminal has sent to the whole group already: one press, two signals. */
const SAME_PRESS_MS = 250;

/** The first signal runs `stop` and ends the process with 0; a second one ends it at once. */
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
