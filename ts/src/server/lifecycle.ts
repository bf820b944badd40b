/**
 * The phase of a server. `serving`: all is well. `stopping`: `/readyz` gives 503 so that load balancers look elsewhere,
 * everything else goes on. `draining`: accepted requests finish, new ones get 503.
 */
export type LifecyclePhase = 'serving' | 'stopping' | 'draining';

const ORDER: readonly LifecyclePhase[] = ['serving', 'stopping', 'draining'];

/** The phase of the server on its way from start to end. A server never goes back to an earlier phase. */
export class Lifecycle {
  #phase: LifecyclePhase = 'serving';

  get phase(): LifecyclePhase {
    return this.#phase;
  }

  /** Goes on to `phase`; an earlier phase changes nothing. */
  advance(phase: LifecyclePhase): void {
    if (ORDER.indexOf(phase) > ORDER.indexOf(this.#phase)) this.#phase = phase;
  }
}
