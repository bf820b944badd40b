/** Wrong usage of the command line: the message that names the right help, and the exit code. */
import { type Command, CommanderError } from 'commander';
import { WrongUsage } from '../refusal.ts';
import { nearestName } from '../schemas/nearest.ts';

/** The exit code of a command line that is wrong by itself, as for other programs; any other failure ends with 1. */
const WRONG_USAGE = 2;

/** Makes every mistake that `command` and its subcommands find in their arguments an error with its own exit code. */
export function refuseWrongUsage(command: Command): void {
  command.exitOverride((error) => {
    throw error.exitCode === 0 ? error : usageError(command, error);
  });
  for (const sub of command.commands) refuseWrongUsage(sub);
}

/** Returns the error with the whole help in place of a missing subcommand, or with the help's name behind its line. */
function usageError(command: Command, { code, message }: CommanderError): CommanderError {
  if (code === 'commander.help') return new CommanderError(WRONG_USAGE, code, command.helpInformation().trimEnd());
  const line = message.replace(/^error: |\.$/g, '').replace(/\s*\n\s*/g, ' ');
  return new CommanderError(WRONG_USAGE, code, `${line}; see ${fullName(command)} --help`);
}

/** Returns the names of a command and of those that it belongs to, such as `svc model check`. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

/** Returns the refusal of a name that is no command of `parent`, with the command that may be meant. */
export function unknownCommand(parent: Command, name: string): WrongUsage {
  const names = parent
    .createHelp()
    .visibleCommands(parent)
    .map((command) => command.name());
  const nearest = nearestName(name, names);
  const meant = nearest === undefined ? '' : ` (Did you mean ${nearest}?)`;
  return new WrongUsage(`unknown command ${JSON.stringify(name)}${meant}; see ${fullName(parent)} --help`);
}

/**
 * Adds the command `help`, which prints the help of the command that its arguments name.
 *
 * @throws WrongUsage when there is no such command.
 */
export function addHelp(program: Command): void {
  program
    .helpCommand(false)
    .command('help')
    .description('print help for a command')
    .argument('[command...]', 'a command, such as model check')
    .action((names: readonly string[]) => commandNamed(program, names).outputHelp());
}

function commandNamed(program: Command, names: readonly string[]): Command {
  return names.reduce((command, name) => {
    const next = command.commands.find((each) => each.name() === name);
    if (next === undefined) throw unknownCommand(command, name);
    return next;
  }, program);
}

/** Returns the exit code that an error of the command line ends the process with. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode;
  return error instanceof WrongUsage ? WRONG_USAGE : 1;
}
