/**
 * Why the process does not start, as one line for the person who started it: what, where, what to do.
 * The command line prints the message alone and exits with 1.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}
