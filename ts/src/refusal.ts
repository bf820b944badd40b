/**
 * The reason why the process does not start or go on, as one line for the person who started it: what, where, what to
 * do. The command line prints only the message and exits with 1.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/**
 * The refusal of a command line that is wrong by itself: a command, an argument or a flag that is unknown, missing or
 * malformed. The command line exits with 2.
 */
export class WrongUsage extends Refusal {}
