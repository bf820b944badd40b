/** `svc ask`: one decision from the command line, made in this process or by a server. */
import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { errorCode } from '../files/system-error.ts';
import { tell } from '../log/tell.ts';
import { loadConfiguredEngine } from '../model/load.ts';
import { decisionHeaders, decisionUrl } from '../network/decision-url.ts';
import { reach, serverName } from '../network/reach.ts';
import { Refusal } from '../refusal.ts';
import { type Config, type Flags, loadConfig } from '../settings/config.ts';
import { answerTable } from './answer-table.ts';
import { requestFromLines } from './question.ts';

export interface AskOptions extends Flags {
  /** A text, `@FILE`, or `-` for stdin. */
  readonly state?: string;
  readonly question?: readonly string[];
  /** The URL of the server that answers; without it the model is loaded in this process. */
  readonly url?: string;
  /** Whether the answer is printed as the server sends it, instead of as a table. */
  readonly json?: boolean;
}

/**
 * Resolves once the answer is written to stdout.
 *
 * @param file - A request as JSON, `-` for stdin; or undefined when `options` hold a state and questions.
 * @throws Refusal when the input is no request, or there is no answer to it.
 */
export async function ask(file: string | undefined, options: AskOptions): Promise<void> {
  const { config, warnings } = loadConfig({ flags: options });
  for (const warning of warnings) tell(warning);
  const request = await readRequest(file, options);
  const answer =
    options.url === undefined
      ? await answerInProcess(config, request)
      : await answerFromServer(options.url, request, config);
  const colors = process.stdout.isTTY && process.stdout.hasColors();
  process.stdout.write(options.json ? Buffer.concat([answer, Buffer.from('\n')]) : answerTable(answer, { colors }));
}

async function readRequest(file: string | undefined, { state, question = [] }: AskOptions): Promise<Buffer> {
  if (file !== undefined) {
    if (state === undefined && question.length === 0) return readInput(file);
    throw new Refusal('a request file holds the state and the questions: leave out --state and --question');
  }
  if (state === undefined)
    throw new Refusal('what is it about? Give --state TEXT, or a request file; see svc ask --help');
  if (question.length === 0) throw new Refusal('nothing is asked: give --question TEXT; see svc ask --help');
  return Buffer.from(requestFromLines(await stateJson(state), question));
}

/** Returns the state as JSON text: the text of a `.json` file as it is, any other text as a string. */
async function stateJson(state: string): Promise<string> {
  const file = state === '-' ? state : /^@(.+)$/s.exec(state)?.[1];
  if (file === undefined) return JSON.stringify(state);
  const text = utf8Text(file, await readInput(file));
  if (!file.endsWith('.json')) return JSON.stringify(text);
  requireJson(file, text);
  return text;
}

/**
 * Requires that `text` is a JSON value. It becomes a part of the request, so any other text could end the state and go
 * on with other members.
 *
 * @throws Refusal when it is not valid JSON.
 */
function requireJson(file: string, text: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new Refusal(`${file}: is not valid JSON`);
  }
}

function utf8Text(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Refusal(`${file === '-' ? 'stdin' : file}: is not UTF-8`);
  }
}

async function readInput(file: string): Promise<Buffer> {
  try {
    return file === '-' ? await buffer(process.stdin) : readFileSync(file);
  } catch (error) {
    throw new Refusal(`${file}: cannot be read (${errorCode(error)})`);
  }
}

async function answerInProcess(config: Config, request: Buffer): Promise<Buffer> {
  const { engine } = await loadConfiguredEngine(config);
  const reply = await engine.decide(request);
  await engine.close();
  if (reply.failure !== undefined) throw new Refusal(reply.failure.message);
  return reply.body;
}

async function answerFromServer(url: string, request: Buffer, config: Config): Promise<Buffer> {
  const endpoint = decisionUrl(url);
  const headers = { ...decisionHeaders(config), accept: 'application/json, text/plain' };
  try {
    const response = await reach(endpoint, { method: 'POST', body: request, headers, redirect: 'error' });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.ok) return body;
    throw new Refusal(`${serverName(endpoint)} answers ${response.status}: ${body.toString('utf8').trim()}`);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const cause = error instanceof Error ? error.cause : undefined;
    throw new Refusal(`cannot reach ${serverName(endpoint)}: ${errorCode(cause) || String(cause ?? error)}`);
  }
}
