/** The orderly end of a command's work at a signal. */

/** The error that ends the work after a signal. */
export class Stopped extends Error {
  /** The exit code of the process: 128 and the number of the signal. */
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('stopped');
    this.exitCode = exitCode;
  }
}

/**
 * Returns a signal that fires at the first SIGINT or SIGTERM, with a `Stopped` as its reason. A second SIGINT or
 * SIGTERM ends the process at once.
 */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const on = (signal: NodeJS.Signals, exitCode: number) =>
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(exitCode);
      controller.abort(new Stopped(exitCode));
    });
  on('SIGINT', 130);
  on('SIGTERM', 143);
  return controller.signal;
}
