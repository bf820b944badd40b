/** The command line: its commands and flags, and the line that tells a refusal. */
import { Command, CommanderError, Option } from 'commander';
import type { AskOptions } from './commands/ask.ts';
import type { BatchFlags } from './commands/batch.ts';
import type { BenchFlags } from './commands/bench.ts';
import type { ConfigFlags } from './commands/config.ts';
import type { DoctorFlags } from './commands/doctor.ts';
import type { McpFlags } from './commands/mcp.ts';
import type { ModelCheckFlags } from './commands/model-check.ts';
import type { ModelListFlags } from './commands/model-list.ts';
import type { ModelPullFlags } from './commands/model-pull.ts';
import { QUESTION_HELP } from './commands/question.ts';
import type { TuneFlags } from './commands/tune.ts';
import { addHelp, exitCodeOf, refuseWrongUsage, unknownCommand } from './commands/usage.ts';
import type { GateFlags } from './gate/settings.ts';
import { printableLines } from './log/printable.ts';
import { Refusal } from './refusal.ts';
import type { Flags } from './settings/config.ts';
import { packageVersion } from './version.ts';

/** The actions of the commands, which tests replace by their own. */
export interface Actions {
  readonly serve: (flags: Flags) => Promise<void>;
  readonly ask: (file: string | undefined, options: AskOptions) => Promise<void>;
  readonly batch: (input: string, flags: BatchFlags) => Promise<void>;
  readonly tune: (flags: TuneFlags) => Promise<void>;
  readonly bench: (url: string, flags: BenchFlags) => Promise<void>;
  readonly gate: (flags: GateFlags) => Promise<void>;
  readonly mcp: (flags: McpFlags) => Promise<void>;
  readonly doctor: (flags: DoctorFlags) => Promise<void>;
  readonly config: (flags: ConfigFlags) => Promise<void>;
  readonly addMissing: (file: string) => Promise<void>;
  readonly health: (flags: Flags) => Promise<void>;
  readonly modelCheck: (dir: string | undefined, flags: ModelCheckFlags) => Promise<void>;
  readonly modelManifest: (dir: string | undefined) => Promise<void>;
  readonly modelPull: (model: string, flags: ModelPullFlags) => Promise<void>;
  readonly modelList: (flags: ModelListFlags) => Promise<void>;
  readonly modelRm: (model: string, flags: Flags) => Promise<void>;
  readonly completion: (shell: string, program: Command) => Promise<void>;
}

/**
 * The actions of the program. Each loads its own code: `svc ask` waits for no HTTP framework, `svc --help` for nothing.
 */
const ACTIONS: Actions = {
  serve: async (flags) => (await import('./commands/serve.ts')).serve(flags),
  ask: async (file, options) => (await import('./commands/ask.ts')).ask(file, options),
  batch: async (input, flags) => (await import('./commands/batch.ts')).batch(input, flags),
  tune: async (flags) => (await import('./commands/tune.ts')).tune(flags),
  bench: async (url, flags) => (await import('./commands/bench.ts')).bench(url, flags),
  gate: async (flags) => (await import('./commands/gate.ts')).gate(flags),
  mcp: async (flags) => (await import('./commands/mcp.ts')).mcp(flags),
  doctor: async (flags) => (await import('./commands/doctor.ts')).doctor(flags),
  config: async (flags) => (await import('./commands/config.ts')).config(flags),
  addMissing: async (file) => (await import('./commands/config.ts')).addMissingSettings(file),
  health: async (flags) => (await import('./commands/health.ts')).health(flags),
  modelCheck: async (dir, flags) => (await import('./commands/model-check.ts')).modelCheck(dir, flags),
  modelManifest: async (dir) => (await import('./commands/model-manifest.ts')).modelManifest(dir),
  modelPull: async (model, flags) => (await import('./commands/model-pull.ts')).modelPull(model, flags),
  modelList: async (flags) => (await import('./commands/model-list.ts')).modelList(flags),
  modelRm: async (model, flags) => (await import('./commands/model-rm.ts')).modelRm(model, flags),
  completion: async (shell, program) => (await import('./commands/completion.ts')).completion(shell, program),
};

const EXAMPLES = `
Examples:
  svc                                              serve on 127.0.0.1:21118
  svc serve --host 0.0.0.0 --port 8080             serve every address; an API key is then required
  svc ask --state 'I was charged twice.' --question 'Does the customer want money back?'
  svc ask request.json --json                      answer a request that is in a file
  svc batch tickets.csv --questions q.json         ask the same of every row of a file
  svc tune --data labelled.jsonl --out mine        fit the probabilities of your questions to labelled rows
  svc bench http://127.0.0.1:21118                 how many requests a server answers, and how fast
  svc doctor                                       what is wrong, and what to do
  svc model check nli                              what the folder nli is, and whether it can be served
  svc model pull hf:org/name                       fetch a model from a hub; svc serve --model hf:org/name serves it

Settings come from svc.json, then from SVC_* variables, then from flags.`;

const ASK_EXAMPLES = `
${QUESTION_HELP}

Examples:
  svc ask --state 'I was charged twice.' --question 'refund: Does the customer want money back?'
  svc ask --state @mail.txt --question 'Which team? = billing | tech | sales' --json
  svc ask request.json
  svc ask - --url http://127.0.0.1:21118 < request.json
  svc ask --interactive --state @mail.txt

With --interactive each line of stdin is a question about the same state, and the model stays loaded between them; so it
does on a terminal when no question is given. /state TEXT or /state @FILE takes another state, /quit ends.

A state in a file that ends in .json is a JSON value, any other is a text.
With --url the key is taken from SVC_API_KEY.`;

const BATCH_NOTES = `
The questions are a JSON object, as "questions" of a request. The output is in the format of the input: JSON lines, CSV
or Parquet, which is written in numbered parts. A row without an answer goes to the file of errors, with the reason.

Examples:
  svc batch tickets.jsonl --questions q.json
  svc batch tickets.csv --questions q.json --state subject --state body --keep id
  svc batch tickets.parquet --questions q.json --url http://10.0.0.1:21118 --url http://10.0.0.2:21118
  grep urgent tickets.jsonl | svc batch - --questions q.json | jq .answers

- stands for stdin, and for stdout as the output, which is its default then; rows without an answer go to stderr. Stdin
is JSON lines unless --format says csv. Such a run leaves no file behind and cannot be resumed.

However a run over files ends, the same command with --resume goes on, and no row is lost or twice.
With --url the key is taken from SVC_API_KEY.`;

const TUNE_NOTES = `
A row has a state, a question and its right answer: true or false, an option's name, or a level's number.
  {"state": "I was charged twice.", "q": {"type": "noul", "instructions": "Money back?"}, "label": true}
CSV has the columns state, type, instructions, criteria (JSON) and label.

Each question is judged on states that no fit has seen. One whose labels are about fewer than 50 different states, or
whose probabilities do not get better by more than chance explains, is left as it is.

Examples:
  svc tune --data labelled.jsonl --out mine
  svc tune --data labelled.csv --out mine --model other-model --overwrite`;

const GATE_NOTES = `
/health is open, /v1/ needs the key of GATE_API_KEY as a Bearer token, all else is not found.
GATE_LISTEN, GATE_UPSTREAM, GATE_CONNECT_TIMEOUT_MS, GATE_TIMEOUT_MS and GATE_BATCH_TIMEOUT_MS stand for the flags.
A server with a key of its own is given it in GATE_UPSTREAM_KEY.
With --run the flags of svc serve, and its settings, are those of the server beside the gate.`;

const MCP_NOTES = `
The tools are decide, classify, score and check. A client starts the command itself, as in this entry of its settings:
  {"mcpServers": {"svc": {"command": "npx", "args": ["-y", "@svc/server", "mcp"]}}}

With --listen the tools are at http://HOST:PORT/mcp. With --url the key is taken from SVC_API_KEY.`;

const BENCH_NOTES = `
Each of the connections sends its next request when it has the answer to the last. Without --requests each request is
the same three questions about another short state; with it they are those of a file, a request as JSON on each line,
in turn. A server that has read a state answers the next question about it faster.
With a key the server is asked with that of SVC_API_KEY.

Examples:
  svc bench http://127.0.0.1:21118
  svc bench http://127.0.0.1:21118 --requests requests.jsonl --concurrency 16 --seconds 30 --json`;

const COMPLETION_NOTES = `
Examples:
  source <(svc completion bash)                                   in ~/.bashrc
  svc completion zsh > "\${fpath[1]}/_svc"                         once
  svc completion fish > ~/.config/fish/completions/svc.fish       once`;

/** How long the line of a refusal waits for its reader. */
const MAX_TELL_MS = 2000;

/**
 * Runs the command that `args` name and resolves once it is done, or serves. A refusal is one line on stderr and exit
 * code 1, or 2 when the command line itself is wrong.
 *
 * @param args - The arguments after the program's name.
 */
export async function main(args: readonly string[]): Promise<void> {
  // The reader of a pipe may leave before the last line, as `head` does.
  process.stdout.on('error', () => process.exit(0));
  // An error of stderr does not end the process: the disk of its file may be full.
  process.stderr.on('error', () => {});
  try {
    await createCommand(ACTIONS).parseAsync(args, { from: 'user' });
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === 0) return;
    process.stderr.write(`${printableLines(explanation(error))}\n`, () => process.exit(exitCode));
    // A reader of the pipe that stands still never takes the line.
    setTimeout(() => process.exit(exitCode), MAX_TELL_MS).unref();
  }
}

/** Returns the command line, not yet parsed. A mistake in it is thrown as an error that `main` puts into one line. */
export function createCommand(actions: Actions): Command {
  const program = new Command('svc')
    .description('Answers typed questions about a text or a JSON value, with calibrated probabilities.')
    .version(packageVersion(), '-v, --version', 'print the version')
    .addOption(new Option('-V', 'print the version').hideHelp())
    .on('option:V', () => tellVersion())
    .helpOption('-h, --help', 'print help')
    .addHelpText('after', EXAMPLES)
    // Mistakes are thrown, and `main` tells them in one line.
    .configureOutput({ writeErr: () => {} });
  addServe(program, actions);
  addAsk(program, actions);
  addBatch(program, actions);
  addTune(program, actions);
  addGate(program, actions);
  addMcp(program, actions);
  addBench(program, actions);
  addChecks(program, actions);
  addModel(program, actions);
  addOwn(program, actions);
  refuseWrongUsage(program);
  return program;
}

function addServe(program: Command, actions: Actions): void {
  withAddressFlags(withServerFlags(program.command('serve', { isDefault: true })))
    .description('serve decisions over HTTP (the default command)')
    // As the default command it also gets words that are no command.
    .allowExcessArguments()
    .action((flags: Flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw unknownCommand(program, unknown);
      return actions.serve(flags);
    });
}

function addAsk(program: Command, actions: Actions): void {
  withEngineFlags(program.command('ask'))
    .description('answer questions once, here or at a server')
    .argument('[request]', 'file with a request as JSON; - is stdin')
    .option('--state <text>', 'what the questions are about: a text, @FILE, or - for stdin')
    .option('--question <text>', 'a question, see below; may be given again', append)
    .option('-i, --interactive', 'read the questions from stdin, one on each line')
    .option('--url <url>', 'ask this server instead of loading the model here')
    .option('--json', 'print the answer as the server sends it')
    .addHelpText('after', ASK_EXAMPLES)
    .action(actions.ask);
}

function addBatch(program: Command, actions: Actions): void {
  withEngineFlags(program.command('batch'))
    .description('answer the same questions about every row of a file, here or at servers')
    .argument('<input>', 'file that ends in .jsonl, .ndjson, .csv, .tsv or .parquet; - is stdin')
    .option('--questions <file>', 'the questions, as JSON')
    .option('--output <file>', 'where the answers go; - is stdout (default: INPUT with .answers before its ending)')
    .option('--errors <file>', 'where bad rows go (default: OUTPUT with .errors.jsonl behind it)')
    .option('--format <name>', 'jsonl, csv or parquet, whatever the ending')
    .option('--state <column>', 'what the questions are about (default: the whole row); may be given again', append)
    .option('--keep <columns>', "the input's columns in the output, with commas (default: all; '' for none)")
    .option('--delimiter <character>', 'between the cells of CSV (default: a comma, in .tsv a tab)')
    .option('--part-rows <n>', 'rows of one part of a Parquet output (default: 100000)')
    .option('--resume', 'go on where the run before ended')
    .option('--overwrite', 'start anew, whatever there is')
    .option('--url <url>', 'ask this server instead of loading the model here; may be given again', append)
    .option('--concurrency <n>', 'requests at once at each server (default: 8)')
    .option('--give-up <seconds>', 'how long no server may answer before it ends (default: 300)')
    .option('--allow-different-servers', 'take servers with other models too: compare neither digests nor answers')
    .addHelpText('after', BATCH_NOTES)
    .action(actions.batch);
}

function addTune(program: Command, actions: Actions): void {
  withEngineFlags(program.command('tune'))
    .description('fit the probabilities of your questions to labelled rows, and write a model folder')
    .option('--data <file>', 'labelled rows, in a file that ends in .jsonl, .ndjson, .csv or .tsv')
    .option('--out <dir>', 'the model folder to write')
    .option('--overwrite', 'replace a model folder that is there')
    .option('--seed <n>', 'another number holds out other states (default: 0)')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', TUNE_NOTES)
    .action((flags: TuneFlags) => actions.tune(flags));
}

function addBench(program: Command, actions: Actions): void {
  program
    .command('bench')
    .description('load a server with requests, and print how fast it answers')
    .argument('<url>', 'the server')
    .option('--requests <file>', 'the requests, as JSON lines (default: three questions about short states)')
    .option('--seconds <n>', 'how long (default: 10)')
    .option('--concurrency <n>', 'requests at once (default: 8)')
    .option('--json', 'print the numbers as JSON')
    .addHelpText('after', BENCH_NOTES)
    .action(actions.bench);
}

function addGate(program: Command, actions: Actions): void {
  withAddressFlags(withServerFlags(program.command('gate')))
    .description('check an API key in front of a server')
    .option('--upstream <url>', 'the server behind it (default: http://127.0.0.1:21119)')
    .option('--run', 'start that server beside the gate, and stop both together')
    .option('--no-key', 'check no key')
    .option('--connect-timeout-ms <n>', 'longest wait for a connection to the server (default: 5000)')
    .option('--timeout-ms <n>', 'longest silence of the server, and longest answer (default: 130000)')
    .option('--batch-timeout-ms <n>', 'longest answer to a batch (default: 3600000)')
    .addHelpText('after', GATE_NOTES)
    .action((flags: GateFlags) => actions.gate(flags));
}

function addMcp(program: Command, actions: Actions): void {
  withServerFlags(program.command('mcp'))
    .description('offer decisions as tools to models, over the Model Context Protocol')
    .option('--url <url>', 'let this server decide instead of loading the model here')
    .option('--listen <host:port>', 'serve over HTTP on this loopback address instead of stdin and stdout')
    .addHelpText('after', MCP_NOTES)
    .action((flags: McpFlags) => actions.mcp(flags));
}

function addChecks(program: Command, actions: Actions): void {
  withAddressFlags(withServerFlags(program.command('doctor')))
    .description('look at everything that a server needs, and say what to do')
    .option('--json', 'print the findings as JSON')
    .action((flags: DoctorFlags) => actions.doctor(flags));
  const config = withAddressFlags(withServerFlags(program.command('config')))
    .description('print the settings of a server, and where each came from')
    .usage('[options]')
    .option('--json', 'print them as JSON')
    .helpCommand(false)
    .action((flags: ConfigFlags) => actions.config(flags));
  config
    .command('add-missing', { hidden: true })
    .description('add listen and device to an svc.json that lacks them, for the installer')
    .argument('<file>', 'the svc.json; made when it is not there')
    .action((file: string) => actions.addMissing(file));
  withAddressFlags(program.command('health'))
    .description('print whether the server with these settings is well')
    .option('--config <file>', 'settings (default: svc.json in the working folder)')
    .action((flags: Flags) => actions.health(flags));
}

function addModel(program: Command, actions: Actions): void {
  const model = program.command('model').description('look at models, fetch and remove them').helpCommand(false);
  withGraphFlag(withRunFlags(model.command('check')))
    .description('say what a model folder is and what is wrong with it, and make one decision with it')
    .argument('[model]', 'model folder, archive, or where it is fetched from (default: that of the settings)')
    .option('--json', 'print it as JSON')
    .action((dir: string | undefined, flags: ModelCheckFlags) => actions.modelCheck(dir, flags));
  model
    .command('manifest')
    .description('list the files of a model folder with their digests, for a source to offer')
    .argument('[dir]', 'model folder (default: the embedded model)')
    .action((dir: string | undefined) => actions.modelManifest(dir));
  withGraphFlag(withRunFlags(model.command('pull')))
    .description('fetch a model, check and try it, and keep it for the next start')
    .argument('<model>', 'where it is fetched from: hf:org/name, https://… or s3://…')
    .option('--json', 'print what it is as JSON')
    .action((name: string, flags: ModelPullFlags) => actions.modelPull(name, flags));
  withConfigFlag(model.command('list'))
    .description('list the fetched models: where they lie, their sizes, families and licences')
    .option('--json', 'print them as JSON')
    .action((flags: ModelListFlags) => actions.modelList(flags));
  withConfigFlag(model.command('rm'))
    .description('remove a fetched model, from the cache of the hub too')
    .argument('<model>', 'where it was fetched from')
    .action((name: string, flags: Flags) => actions.modelRm(name, flags));
}

/** Adds the commands about the command line itself. */
function addOwn(program: Command, actions: Actions): void {
  program.command('version').description('print the version').action(tellVersion);
  program
    .command('completion')
    .description('print the script that completes command lines in a shell')
    .argument('<shell>', 'bash, zsh or fish')
    .addHelpText('after', COMPLETION_NOTES)
    .action((shell: string) => actions.completion(shell, program));
  addHelp(program);
}

function tellVersion(): never {
  process.stdout.write(`${packageVersion()}\n`);
  throw new CommanderError(0, 'commander.version', packageVersion());
}

/** Adds the flags of every command that is about a server's address. */
function withAddressFlags(command: Command): Command {
  return command
    .option('--listen <host:port>', 'listen address (default: 127.0.0.1:21118); beyond loopback an API key is required')
    .option('--host <host>', 'the host of the listen address')
    .option('-p, --port <port>', 'the port of the listen address; 0 takes a free one');
}

function withServerFlags(command: Command): Command {
  return withEngineFlags(command)
    .option('--log-level <level>', 'fatal, error, warn, info, debug, trace or silent')
    .option('--log-format <format>', 'json or pretty (default: pretty on a terminal, else json)');
}

/** Adds the flags of every command that loads a model. */
function withEngineFlags(command: Command): Command {
  return withGraphFlag(
    withRunFlags(command).option(
      '--model <model>',
      'model folder, archive, or where it is fetched from (default: the embedded model)',
    ),
  );
}

function withGraphFlag(command: Command): Command {
  return command.option('--model-file <file>', 'which graph of several a model from a hub has');
}

/** Adds the flags that say what to run a model on, and where the settings are. */
function withRunFlags(command: Command): Command {
  return withConfigFlag(command)
    .option('--device <name>', 'auto, cpu, gpu, cuda, coreml or directml')
    .option('--threads <n>', 'threads of one model run; 0 takes all there are')
    .option('--parallel <n>', 'requests that may be on the model at once, or auto')
    .option('--runtime <file>', 'another build of the ONNX Runtime library');
}

function withConfigFlag(command: Command): Command {
  return command.option('--config <file>', 'settings (default: svc.json in the working folder)');
}

function append(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

function explanation(error: unknown): string {
  if (error instanceof Refusal || error instanceof CommanderError) return error.message;
  if (!(error instanceof Error)) return String(error);
  // An import of the class `EngineError` would load code that not every command needs.
  return error.name === 'EngineError' ? error.message : (error.stack ?? error.message);
}
