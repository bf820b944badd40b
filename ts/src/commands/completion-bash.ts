/** The completion of bash, in functions of bash alone, so that no other package is needed. */
import type { CompletedCommand, CompletedFlag } from './completion.ts';

/** Returns the script, which `source <(svc completion bash)` takes in. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  const flags = commands.flatMap((command) => command.flags);
  return `# Completion of svc in bash: source <(svc completion bash)
_svc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" path='' word offered=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${commands.flatMap(steps).join(' | ')}) path="\${path:+$path }$word" ;;
    esac
  done
  COMPREPLY=()
  case "$before" in
${valueCases(flags)}
  esac
  case "$path" in
${commands.map(commandCase).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
  case "$path" in
    ${patterns(commands.filter(({ takesFile }) => takesFile).map(({ path }) => path))})
      if [[ $current != -* ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$current"))
      fi ;;
  esac
}
complete -F _svc svc
`;
}

/** Returns the patterns of the words that lead from a command to its subcommands. */
function steps({ path, subcommands }: CompletedCommand): string[] {
  return subcommands.map(({ name }) => `'${path} ${name}'`);
}

function patterns(names: readonly string[]): string {
  return [...new Set(names)].map((name) => `'${name}'`).join(' | ');
}

/** Returns the cases of flags whose value comes next. */
function valueCases(flags: readonly CompletedFlag[]): string {
  const of = (value: CompletedFlag['value']) =>
    patterns(flags.filter((flag) => String(flag.value) === String(value)).flatMap(({ names }) => names));
  const lists = new Map(flags.flatMap(({ value }) => (typeof value === 'string' ? [] : [[value.join(' '), value]])));
  const listed = [...lists].map(
    ([words, value]) => `    ${of(value)}) COMPREPLY=($(compgen -W '${words}' -- "$current")); return ;;`,
  );
  return [
    ...listed,
    `    ${of('file')})
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$current")); return ;;`,
    `    ${of('text')}) return ;;`,
  ].join('\n');
}

function commandCase({ path, subcommands, flags, choices }: CompletedCommand): string {
  const words = [...subcommands.map(({ name }) => name), ...choices, ...flags.flatMap(({ names }) => names)];
  return `    '${path}') offered='${words.join(' ')}' ;;`;
}
