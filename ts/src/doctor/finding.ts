/** A finding of `svc doctor` about one check. */
export interface Finding {
  /** The name of the check. */
  readonly check: string;
  /**
   * The result. `problem`: the server does not start or does not work like this. `warning`: it works, but worse than it
   * could.
   */
  readonly status: 'ok' | 'warning' | 'problem';
  /** The message, in one line. */
  readonly message: string;
  /** The advice, in one line; absent if there is nothing to do. */
  readonly advice?: string;
}

export function ok(check: string, message: string): Finding {
  return { check, status: 'ok', message };
}

export function warning(check: string, message: string, advice?: string): Finding {
  return { check, status: 'warning', message, ...(advice !== undefined && { advice }) };
}

export function problem(check: string, message: string, advice?: string): Finding {
  return { check, status: 'problem', message, ...(advice !== undefined && { advice }) };
}
