/** The report on each question, for a person. */
import type { Verdict } from './judge.ts';
import type { AskedQuestion } from './labels.ts';
import type { Measures } from './measures.ts';

export interface Tuned {
  readonly question: AskedQuestion;
  readonly verdict: Verdict;
}

const TITLES: Readonly<Record<keyof Measures, string>> = {
  accuracy: 'accuracy',
  negative_log_likelihood: 'negative log-likelihood',
  ece: 'calibration error (ECE)',
  brier: 'Brier score',
};

const WIDTH = Math.max(...Object.values(TITLES).map((title) => title.length));
/** The number of characters shown of a long question. */
const SHOWN_CHARACTERS = 60;

/** Returns the report as text, one block for each question. */
export function reportText(tuned: readonly Tuned[]): string {
  return tuned.map((one) => `${blockOf(one).join('\n')}\n`).join('\n');
}

/** Returns the report as JSON values, one for each question. */
export function reportJson(tuned: readonly Tuned[]): object[] {
  return tuned.map(({ question: { key, kind, instructions, options }, verdict }) => ({
    ...{ key, type: kind, instructions, options },
    ...verdict,
  }));
}

function blockOf({ question, verdict }: Tuned): string[] {
  const { labels, states, before, after, calibration, reason } = verdict;
  const title = `${questionTitle(question)}: ${labels} labels about ${states} states`;
  const table = after === undefined ? [] : tableOf(before, after);
  if (calibration === undefined) return [title, ...table, `  nothing is written for it: ${reason}`];
  const bias = calibration.bias.map((value, index) => `${quoted(question.options[index] ?? '')} ${value}`);
  const biases = bias.length === 0 ? '' : `, bias ${bias.join(', ')}`;
  return [title, ...table, `  temperature ${calibration.temperature}${biases}`];
}

function tableOf(before: Measures, after: Measures): string[] {
  const names = Object.keys(TITLES) as (keyof Measures)[];
  const row = (title: string, ...cells: string[]) =>
    `  ${title.padEnd(WIDTH)}${cells.map((cell) => cell.padStart(9)).join('')}`;
  return [
    row('', 'before', 'held out'),
    ...names.map((name) => row(TITLES[name], before[name].toFixed(4), after[name].toFixed(4))),
  ];
}

/** Returns the question in one line. */
export function questionTitle({ kind, instructions, options }: AskedQuestion): string {
  const text = [...instructions];
  const shown = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS - 1).join('')}…` : instructions;
  const count = kind === 'noul' ? '' : ` of ${options.length}`;
  return `${quoted(shown)} (${kind}${count})`;
}

/** Returns the text quoted, so that no control character from a file reaches a terminal. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\u009f]/g, (code) => `\\u00${code.charCodeAt(0).toString(16)}`);
}
