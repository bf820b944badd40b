/** The completion of fish. */
import type { CompletedCommand, CompletedFlag } from './completion.ts';

/** Returns the script, a file `svc.fish` in the folder of fish's completions. */
export function fishScript(commands: readonly CompletedCommand[]): string {
  const steps = commands.flatMap(({ path, subcommands }) => subcommands.map(({ name }) => quoted(`${path} ${name}`)));
  return `# Completion of svc in fish: svc completion fish > ~/.config/fish/completions/svc.fish
function __svc_at
    set -l path
    for word in (commandline -opc)[2..]
        switch "$path $word"
            case ${steps.join(' ')}
                set -a path $word
        end
    end
    test "$path" = "$argv[1]"
end
complete -c svc -f
${commands.map(lines).join('\n')}
`;
}

function lines({ path, subcommands, choices, flags, takesFile }: CompletedCommand): string {
  const here = `complete -c svc -n ${quoted(`__svc_at '${path}'`)}`;
  return [
    ...subcommands.map(({ name, description }) => `${here} -a ${name} -d ${quoted(description)}`),
    ...choices.map((name) => `${here} -a ${name}`),
    ...(takesFile ? [`${here} -F`] : []),
    ...flags.map((flag) => `${here} ${spelled(flag)}${valueSpelled(flag)} -d ${quoted(flag.description)}`),
  ].join('\n');
}

function spelled({ names }: CompletedFlag): string {
  return names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(' ');
}

function valueSpelled({ value }: CompletedFlag): string {
  if (value === 'none') return '';
  if (value === 'file') return ' -r -F';
  return value === 'text' ? ' -x' : ` -x -a ${quoted([value].flat().join(' '))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
