/** The command line: which commands and flags there are, and how a refusal is told. */
import { Command, CommanderError } from 'commander';
import type { AskOptions } from './commands/ask.ts';
import { QUESTION_HELP } from './commands/question.ts';
import type { Flags } from './config.ts';
import { Refusal } from './refusal.ts';
import { packageVersion } from './version.ts';

/** What the commands do, in place of which tests put their own. */
export interface Actions {
  readonly serve: (flags: Flags) => Promise<void>;
  readonly ask: (file: string | undefined, options: AskOptions) => Promise<void>;
}

/** Each loads its own code: `svc ask` waits for no HTTP framework, `svc --help` for nothing. */
const ACTIONS: Actions = {
  serve: async (flags) => (await import('./commands/serve.ts')).serve(flags),
  ask: async (file, options) => (await import('./commands/ask.ts')).ask(file, options),
};

const EXAMPLES = `
Examples:
  svc                                              serve on 127.0.0.1:21118
  svc serve --listen 0.0.0.0:21118                 serve every address; an API key is then required
  svc ask --state 'I was charged twice.' --question 'Does the customer want money back?'
  svc ask request.json --json                      answer a request that is in a file

Settings come from svc.json, then from SVC_* variables, then from flags.`;

const ASK_EXAMPLES = `
${QUESTION_HELP}

Examples:
  svc ask --state 'I was charged twice.' --question 'refund: Does the customer want money back?'
  svc ask --state @mail.txt --question 'Which team? = billing | tech | sales' --json
  svc ask request.json
  svc ask - --url http://127.0.0.1:21118 < request.json

A state in a file that ends in .json is a JSON value, any other is a text.
With --url the key is taken from SVC_API_KEY.`;

/**
 * Runs the command that `args` name and resolves once it is done, or serves. What refuses is one line on stderr and
 * exit code 1.
 *
 * @param args - The arguments after the program's name.
 */
export async function main(args: readonly string[]): Promise<void> {
  // The reader of a pipe may leave before the last line, as `head` does.
  process.stdout.on('error', () => process.exit(0));
  try {
    await createCommand(ACTIONS).parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return;
    process.stderr.write(`${explanation(error)}\n`, () => process.exit(1));
  }
}

/** The command line, not yet parsed. A mistake in it is thrown as an error that `main` puts into one line. */
export function createCommand(actions: Actions): Command {
  const program = new Command('svc')
    .description('Answers typed questions about a text or a JSON value, with calibrated probabilities.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .addHelpText('after', EXAMPLES)
    // What is wrong is thrown, and then told in one line.
    .configureOutput({ writeErr: () => {} })
    .exitOverride();
  withEngineFlags(program.command('serve', { isDefault: true }))
    .description('serve decisions over HTTP (the default command)')
    .option('--listen <host:port>', 'listen address; beyond loopback an API key is required')
    .option('--log-level <level>', 'fatal, error, warn, info, debug, trace or silent')
    .option('--log-format <format>', 'json or pretty (default: pretty on a terminal, else json)')
    // As the default command it gets what is no command, too.
    .allowExcessArguments()
    .action((flags: Flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw new Refusal(`unknown command ${JSON.stringify(unknown)}; see svc --help`);
      return actions.serve(flags);
    });
  withEngineFlags(program.command('ask'))
    .description('answer questions once, here or at a server')
    .argument('[request]', 'file with a request as JSON; - is stdin')
    .option('--state <text>', 'what the questions are about: a text, @FILE, or - for stdin')
    .option('--question <text>', 'a question, see below; may be given again', append)
    .option('--url <url>', 'ask this server instead of loading the model here')
    .option('--json', 'print the answer as the server sends it')
    .addHelpText('after', ASK_EXAMPLES)
    .action(actions.ask);
  return program;
}

/** The flags of every command that loads a model. */
function withEngineFlags(command: Command): Command {
  return command
    .option('--config <file>', 'settings (default: svc.json in the working folder)')
    .option('--model <dir>', 'model folder (default: the embedded model)')
    .option('--device <name>', 'auto, cpu, gpu, cuda, coreml or directml')
    .option('--threads <n>', 'threads of one model run; 0 takes all there are')
    .option('--runtime <file>', 'another build of the ONNX Runtime library');
}

function append(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

function explanation(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  if (error instanceof CommanderError) {
    const message = error.code === 'commander.help' ? 'unknown command' : error.message;
    return `${message.replace(/^error: |\.$/g, '').replace(/\s*\n\s*/g, ' ')}; see svc --help`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
