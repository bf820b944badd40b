/** `svc completion`: the scripts with which shells complete command lines. */
import type { Command, Option } from 'commander';
import { WrongUsage } from '../refusal.ts';
import { type ConfigKey, settingSchema } from '../schemas/config.ts';
import { bashScript } from './completion-bash.ts';
import { fishScript } from './completion-fish.ts';
import { zshScript } from './completion-zsh.ts';
import { fullName } from './usage.ts';

/** A flag, as a shell completes it. */
export interface CompletedFlag {
  /** The spellings, such as `-p` and `--port`. */
  readonly names: readonly string[];
  readonly description: string;
  /** The kind of its value: none, a file, one of a list, or a text that cannot be completed. */
  readonly value: 'none' | 'file' | 'text' | readonly string[];
}

/** A command, as a shell completes what follows it. */
export interface CompletedCommand {
  /** The names behind `svc`, such as `model check`; empty for `svc` itself. */
  readonly path: string;
  readonly description: string;
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly flags: readonly CompletedFlag[];
  /** The values of its argument where these are known. */
  readonly choices: readonly string[];
  /** Whether its argument is a file or a folder. */
  readonly takesFile: boolean;
}

const SHELLS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** The values of flags that take one of a list. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  '--device': settingValues('device'),
  '--log-level': settingValues('log_level'),
  '--log-format': settingValues('log_format'),
  '--format': ['jsonl', 'csv', 'parquet'],
};

/**
 * Resolves once the script of a shell is on stdout. It is made from the commands themselves, so it has all of them.
 *
 * @throws WrongUsage when there is none for this shell.
 */
export async function completion(shell: string, program: Command): Promise<void> {
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (script === undefined) {
    throw new WrongUsage(`there is no completion for ${JSON.stringify(shell)}: bash, zsh and fish have one`);
  }
  process.stdout.write(script(withDefault(completedCommands(program))));
}

/** Returns the commands with the flags of `serve` added to `svc` alone, which stands for it. */
function withDefault(commands: readonly CompletedCommand[]): CompletedCommand[] {
  const serve = commands.find(({ path }) => path === 'serve');
  return commands.map((command) => {
    if (command.path !== '' || serve === undefined) return command;
    const own = new Set(command.flags.flatMap(({ names }) => names));
    return {
      ...command,
      flags: [...command.flags, ...serve.flags.filter(({ names }) => !names.some((name) => own.has(name)))],
    };
  });
}

/** Returns a command and all of its subcommands, except hidden ones. */
export function completedCommands(command: Command): CompletedCommand[] {
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command);
  const own = {
    path: fullName(command).split(' ').slice(1).join(' '),
    description: command.description(),
    subcommands: subcommands.map((sub) => ({ name: sub.name(), description: sub.description() })),
    flags: help.visibleOptions(command).map(completedFlag),
    ...argumentOf(command, subcommands),
  };
  return [own, ...subcommands.flatMap(completedCommands)];
}

function argumentOf(command: Command, subcommands: readonly Command[]) {
  const name = command.registeredArguments[0]?.name() ?? '';
  if (name === 'shell') return { choices: Object.keys(SHELLS), takesFile: false };
  if (name === 'command') {
    const siblings = command.parent?.createHelp().visibleCommands(command.parent) ?? [];
    return { choices: siblings.map((sibling) => sibling.name()), takesFile: false };
  }
  return { choices: [], takesFile: subcommands.length === 0 && name !== '' && name !== 'url' };
}

function completedFlag({ short, long, flags, description }: Option): CompletedFlag {
  const names = [short, long].filter((name) => name !== undefined && name !== null);
  const value = /<(.+)>/.exec(flags)?.[1];
  const known = VALUES[long ?? ''];
  const isFile = value !== undefined && ['file', 'dir', 'model'].includes(value);
  return { names, description, value: known ?? (value === undefined ? 'none' : isFile ? 'file' : 'text') };
}

function settingValues(key: ConfigKey): readonly string[] {
  return (settingSchema(key).anyOf ?? []).flatMap((choice) => (choice.const === undefined ? [] : [choice.const]));
}
