/** A session of `svc ask`: lines with questions about one state, answered one after the other. */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { Refusal } from '../refusal.ts';
import { stateJson } from './ask-input.ts';
import { QUESTION_HELP, type Refusing, requestFromLines } from './question.ts';

export interface Session {
  /** The state to begin with, as JSON text; without one, the first line is the state. */
  readonly state: string | undefined;
  readonly input: Readable;
  /** The stream of the prompts, which only a terminal gets. */
  readonly output: Writable;
  readonly isTerminal: boolean;
  /**
   * Resolves when questions can be asked; it begins before the first line is read, and its failure ends the session.
   */
  readonly ready: Promise<unknown>;
  /**
   * Resolves with the body of the answer.
   *
   * @throws Refusal when there is none.
   */
  ask(request: Buffer): Promise<Buffer>;
  show(answer: Buffer): void;
  /** Takes the reason why a line has no answer. */
  refused(message: string): void;
}

const COMMANDS = `/state TEXT or /state @FILE takes another state, /quit ends.`;
const HELP = `${QUESTION_HELP}\n${COMMANDS}`;

/**
 * Resolves when the input ends, or a line says `/quit`. A line without an answer does not end the session; where nobody
 * sits at a terminal, the exit code is then 1.
 */
export async function askSession(session: Session): Promise<void> {
  const { input, output, isTerminal } = session;
  const lines = createInterface({ input, ...(isTerminal ? { output } : {}), terminal: isTerminal });
  let { state } = session;
  const prompt = () => {
    lines.setPrompt(state === undefined ? 'state: ' : '? ');
    if (isTerminal) lines.prompt();
  };
  if (isTerminal) output.write('A line is a question about the state; /help explains how it is written.\n');
  prompt();
  for await (const text of lines) {
    const line = text.trim();
    if (line === '/quit') break;
    await session.ready;
    try {
      state = await turn(session, state, line);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      session.refused(error.message);
      if (!isTerminal) process.exitCode = 1;
    }
    prompt();
  }
  lines.close();
}

/** Does what one line says, and returns the state that is then in force. */
async function turn(session: Session, state: string | undefined, line: string): Promise<string | undefined> {
  if (line === '') return state;
  if (line === '/help') session.output.write(`${HELP}\n`);
  else if (/^\/state(\s|$)/.test(line)) return newState(line.slice('/state'.length).trim());
  else if (/^\/\w+$/.test(line)) throw new Refusal(`${line}: there is no such command; /help lists them`);
  else if (state === undefined) return newState(line);
  else session.show(await session.ask(Buffer.from(requestFromLines(state, [line], refusing))));
  return state;
}

const refusing: Refusing = (line, why) => `${line}: ${why}; /help explains how a question is written`;

async function newState(text: string): Promise<string> {
  if (text === '' || text === '-') throw new Refusal('/state needs a text, or @FILE');
  return stateJson(text);
}
