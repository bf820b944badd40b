/** The one-line spelling of a question on the command line, and the request that is made of such lines. */
import { Refusal } from '../refusal.ts';

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

/**
 * Returns the JSON text of a decision request. The text is put together by hand: a JavaScript object would move names
 * that look like integers to the front, and the order of options counts.
 *
 * @param stateJson - The state as JSON text.
 * @throws Refusal when a question is not spelled as `QUESTION_HELP` says.
 */
export function requestFromLines(stateJson: string, questions: readonly string[]): string {
  const members = questions.map((question, index) => questionMember(question, `q${index + 1}`));
  return `{"state":${stateJson},"questions":{${members.join(',')}}}`;
}

function questionMember(line: string, fallbackId: string): string {
  const { id = fallbackId, rest = line } = ID.exec(line)?.groups ?? {};
  return `${JSON.stringify(id)}:${questionBody(rest.trim(), line)}`;
}

function questionBody(text: string, line: string): string {
  if (text === '') throw malformed(line, 'it has no text');
  const { text: before = '', options = '' } = OPTIONS.exec(text)?.groups ?? {};
  const isChoice = options.includes('|');
  const isScore = /(^|\s)<(\s|$)/.test(options);
  if (isChoice && isScore) throw malformed(line, 'it has both | and <: a choice or a score');
  const instructions = `"instructions":${JSON.stringify(isChoice || isScore ? before : text)}`;
  if (isChoice) return `{"type":"choice",${instructions},"criteria":{${options.split('|').map(option(line))}}}`;
  if (isScore) return `{"type":"score",${instructions},"criteria":[${levels(options, line)}]}`;
  return `{"type":"noul",${instructions}}`;
}

function option(line: string): (text: string) => string {
  return (text) => {
    const [, name = '', description] = /^\s*(.*?)\s*(?::\s+(.*?)\s*)?$/s.exec(text) ?? [];
    if (name === '') throw malformed(line, 'an option has no name');
    return `${JSON.stringify(name)}:${description ? JSON.stringify(description) : 'null'}`;
  };
}

function levels(options: string, line: string): string {
  const texts = options.split(/(?<=^|\s)<(?=\s|$)/).map((text) => text.trim());
  if (texts.includes('')) throw malformed(line, 'a level has no text');
  return texts.map((text) => JSON.stringify(text)).join(',');
}

function malformed(line: string, why: string): Refusal {
  return new Refusal(`--question ${JSON.stringify(line)}: ${why}; see svc ask --help`);
}
