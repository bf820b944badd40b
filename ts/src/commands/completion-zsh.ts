/** The completion of zsh. */
import type { CompletedCommand, CompletedFlag } from './completion.ts';

/** Returns the script, a file `_svc` in a folder of `fpath`. */
export function zshScript(commands: readonly CompletedCommand[]): string {
  return `#compdef svc
# Completion of svc in zsh: svc completion zsh > "\${fpath[1]}/_svc"
_svc() {
  local path='' word
  local -a commands flags
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$path $word" in
      ${steps(commands)}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$words[CURRENT-1]" in
${valueCases(commands.flatMap((command) => command.flags))}
  esac
  case "$path" in
${commands.map(commandCase).join('\n')}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o flag flags
    return
  fi
  (( $#commands )) && _describe command commands
  case "$path" in
    ${patterns(commands.filter(({ takesFile }) => takesFile).map(({ path }) => path))}) _files ;;
  esac
}
if [ "$funcstack[1]" = _svc ]; then _svc "$@"; else compdef _svc svc; fi
`;
}

function steps(commands: readonly CompletedCommand[]): string {
  return patterns(commands.flatMap(({ path, subcommands }) => subcommands.map(({ name }) => `${path} ${name}`)));
}

function patterns(names: readonly string[]): string {
  return [...new Set(names)].map((name) => `'${name}'`).join(' | ');
}

function valueCases(flags: readonly CompletedFlag[]): string {
  const groups = new Map<string, string[]>();
  for (const { names, value } of flags) {
    if (value !== 'none') groups.set(valueAction(value), [...(groups.get(valueAction(value)) ?? []), ...names]);
  }
  return [...groups].map(([action, names]) => `    ${patterns(names)}) ${action} ;;`).join('\n');
}

function valueAction(value: CompletedFlag['value']): string {
  if (value === 'file') return '_files; return';
  return value === 'text' ? 'return' : `compadd -- ${[value].flat().join(' ')}; return`;
}

function commandCase({ path, subcommands, choices, flags }: CompletedCommand): string {
  const commands = [
    ...subcommands.map(({ name, description }) => described(name, description)),
    ...choices.map((name) => `'${name}'`),
  ];
  const own = flags.flatMap(({ names, description }) => names.map((name) => described(name, description)));
  return `    '${path}')
      commands=(${commands.join(' ')})
      flags=(${own.join(' ')}) ;;`;
}

/** Returns a name with its description, as one word of zsh; a colon in a name would end it. */
function described(name: string, description: string): string {
  return `'${`${name.replaceAll(':', '\\:')}:${description}`.replaceAll("'", "'\\''")}'`;
}
