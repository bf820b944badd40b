/** The one-line spelling of a question on the command line, and the request that is made of such lines. */
import { WrongUsage } from '../refusal.ts';

/** The explanation of this spelling in `--help`. */
export const QUESTION_HELP = `A question is one line of text:
  'Is the customer angry?'                                   yes or no
  'Which team? = billing | tech | sales'                     choice: options between |
  'How angry? = calm < annoyed < furious'                    score: levels between <, lowest first
  'team: Which team? = billing: payments | tech: outages'    an id in front, descriptions of options
Without an id it is called q1, q2, ... The options follow the last = that has a space on both sides.`;

/** An id ends at a colon with a space after it, so that a text which starts with an address keeps it. */
const ID = /^\s*(?<id>[\w.-]+):\s+(?<rest>\S.*)$/s;
const OPTIONS = /^(?<text>.*\S)\s+=\s(?<options>.*)$/s;

/** Returns the message that refuses a question, from its line and the reason. */
export type Refusing = (line: string, why: string) => string;

/** Returns the refusal of one question. */
type Malformed = (why: string) => WrongUsage;

const AS_FLAG: Refusing = (line, why) => `--question ${JSON.stringify(line)}: ${why}; see svc ask --help`;

/**
 * Returns the JSON text of a decision request. The text is put together by hand: a JavaScript object would move names
 * that look like integers to the front, and the order of options counts.
 *
 * @param stateJson - The state as JSON text.
 * @throws WrongUsage when a question is not spelled as `QUESTION_HELP` says.
 */
export function requestFromLines(
  stateJson: string,
  questions: readonly string[],
  refusing: Refusing = AS_FLAG,
): string {
  const members = questions.map((line, index) =>
    questionMember(line, `q${index + 1}`, (why) => new WrongUsage(refusing(line, why))),
  );
  return `{"state":${stateJson},"questions":{${members.join(',')}}}`;
}

function questionMember(line: string, fallbackId: string, malformed: Malformed): string {
  const { id = fallbackId, rest = line } = ID.exec(line)?.groups ?? {};
  return `${JSON.stringify(id)}:${questionBody(rest.trim(), malformed)}`;
}

function questionBody(text: string, malformed: Malformed): string {
  if (text === '') throw malformed('it has no text');
  if (/^=\s/.test(text)) throw malformed('it has no text in front of =');
  const { text: before = '', options = '' } = OPTIONS.exec(text)?.groups ?? {};
  const isChoice = options.includes('|');
  const isScore = /(^|\s)<(\s|$)/.test(options);
  if (isChoice && isScore) throw malformed('it has both | and <: a choice or a score');
  if (!isChoice && !isScore) requireNoOptions(text, malformed);
  const instructions = `"instructions":${JSON.stringify(isChoice || isScore ? before : text)}`;
  if (isChoice) return `{"type":"choice",${instructions},"criteria":{${options.split('|').map(option(malformed))}}}`;
  if (isScore) return `{"type":"score",${instructions},"criteria":[${levels(options, malformed)}]}`;
  return `{"type":"noul",${instructions}}`;
}

/**
 * Checks that a question of yes or no does not go on after its question mark with something that was meant for options.
 */
function requireNoOptions(text: string, malformed: Malformed): void {
  const [, before, after] = /\?(\s*)=(\s*\S?)/.exec(text) ?? [];
  if (before === undefined || after === undefined) return;
  if (after === '') throw malformed('it has no options behind =');
  const isSpaced = before !== '' && /^\s/.test(after);
  throw malformed(
    isSpaced
      ? 'it has one option: put | or < between several'
      : 'the = in front of options needs a space on both sides',
  );
}

function option(malformed: Malformed): (text: string) => string {
  return (text) => {
    const [, name = '', description] = /^\s*(.*?)\s*(?::\s+(.*?)\s*)?$/s.exec(text) ?? [];
    if (name === '') throw malformed('an option has no name');
    return `${JSON.stringify(name)}:${description ? JSON.stringify(description) : 'null'}`;
  };
}

function levels(options: string, malformed: Malformed): string {
  const texts = options.split(/(?<=^|\s)<(?=\s|$)/).map((text) => text.trim());
  if (texts.includes('')) throw malformed('a level has no text');
  return texts.map((text) => JSON.stringify(text)).join(',');
}
