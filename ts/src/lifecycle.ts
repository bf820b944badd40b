/**
 * `serving`: all is well. `stopping`: `/readyz` gives 503 so that load balancers look elsewhere, all else goes on.
 * `draining`: accepted requests finish, new ones get 503.
 */
export type Phase = 'serving' | 'stopping' | 'draining';

const ORDER: readonly Phase[] = ['serving', 'stopping', 'draining'];

/** Where the server is on its way from start to end. It never goes back. */
export class Lifecycle {
  #phase: Phase = 'serving';

  get phase(): Phase {
    return this.#phase;
  }

  /** Goes on to `phase`; a phase that is behind changes nothing. */
  advance(phase: Phase): void {
    if (ORDER.indexOf(phase) > ORDER.indexOf(this.#phase)) this.#phase = phase;
  }
}
