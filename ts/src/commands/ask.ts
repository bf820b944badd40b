/** `svc ask`: decisions from the command line, made in this process or by a server. */
import { tell } from '../log/tell.ts';
import { Refusal, WrongUsage } from '../refusal.ts';
import type { Config, Flags } from '../settings/config.ts';
import { answerTable } from './answer-table.ts';
import { inputName, readInput, stateJson } from './ask-input.ts';
import { openAsker, WrongRequest } from './asker.ts';
import { commandSettings } from './command-settings.ts';
import { requestFromLines } from './question.ts';

export interface AskOptions extends Flags {
  /** A text, `@FILE`, or `-` for stdin. */
  readonly state?: string;
  readonly question?: readonly string[];
  /** Whether the questions are lines of stdin, about one state. */
  readonly interactive?: boolean;
  /** The URL of the server that answers; without it the model is loaded in this process. */
  readonly url?: string;
  /** Whether the answer is printed as the server sends it, instead of as a table. */
  readonly json?: boolean;
}

/**
 * Resolves once the answer is written to stdout, or the session of questions has ended.
 *
 * @param file - A request as JSON, `-` for stdin; or undefined when `options` hold a state and questions.
 * @throws Refusal when the input is no request, or there is no answer to it.
 */
export async function ask(file: string | undefined, options: AskOptions): Promise<void> {
  const config = commandSettings(options);
  if (isSession(file, options)) return askInTurn(options, config);
  const request = await readRequest(file, options);
  const asker = await openAsker(config, options.url);
  try {
    show(await asker.ask(request), options);
  } catch (error) {
    throw file === undefined ? error : ofFile(file, error);
  } finally {
    await asker.close();
  }
}

/** Whether questions are to be read from stdin: where that is asked for, and on a terminal where none is given. */
function isSession(file: string | undefined, { state, question = [], interactive = false }: AskOptions): boolean {
  if (!interactive) {
    const isOnTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
    return isOnTerminal && file === undefined && question.length === 0 && state !== '-';
  }
  if (file !== undefined) throw new WrongUsage('--interactive reads questions, so leave out the request file');
  if (question.length > 0) throw new WrongUsage('--interactive reads the questions from stdin: leave out --question');
  if (state === '-') throw new WrongUsage('--interactive reads questions from stdin, so the state cannot come from it');
  return true;
}

async function askInTurn(options: AskOptions, config: Config): Promise<void> {
  const { askSession } = await import('./ask-session.ts');
  const state = options.state === undefined ? undefined : await stateJson(options.state);
  // The model is loaded while the first question is typed.
  const asker = openAsker(config, options.url);
  asker.catch(() => {});
  if (options.url !== undefined) await asker;
  try {
    await askSession({
      state,
      input: process.stdin,
      output: process.stdout,
      isTerminal: process.stdin.isTTY === true && process.stdout.isTTY === true,
      ready: asker,
      ask: async (request) => (await asker).ask(request),
      show: (answer) => show(answer, options),
      refused: tell,
    });
  } finally {
    const opened = await asker.catch(() => undefined);
    await opened?.close();
  }
}

function show(answer: Buffer, { json = false }: AskOptions): void {
  const { stdout } = process;
  const colors = stdout.isTTY && stdout.hasColors();
  // A terminal that does not know its width says 0.
  const columns = (stdout.isTTY && stdout.columns) || undefined;
  stdout.write(json ? Buffer.concat([answer, Buffer.from('\n')]) : answerTable(answer, { colors, columns }));
}

/** Returns the error with the file in front, where the request in it is wrong. */
function ofFile(file: string, error: unknown): unknown {
  return error instanceof WrongRequest ? new Refusal(`${inputName(file)}: ${error.message}`) : error;
}

async function readRequest(file: string | undefined, { state, question = [] }: AskOptions): Promise<Buffer> {
  if (file !== undefined) {
    if (state === undefined && question.length === 0) return readInput(file, 'the request, as JSON');
    throw new WrongUsage('a request file holds the state and the questions: leave out --state and --question');
  }
  if (state === undefined)
    throw new WrongUsage('what is it about? Give --state TEXT, or a request file; see svc ask --help');
  if (question.length === 0) throw new WrongUsage('nothing is asked: give --question TEXT; see svc ask --help');
  return Buffer.from(requestFromLines(await stateJson(state), question));
}
