/** What `svc doctor` says of one thing that it looked at. */
export interface Finding {
  /** What was looked at. */
  readonly check: string;
  /** `problem`: the server does not start or does not work like this. `warning`: it does, worse than it could. */
  readonly status: 'ok' | 'warning' | 'problem';
  /** One line. */
  readonly message: string;
  /** What to do, one line; absent when there is nothing to do. */
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
