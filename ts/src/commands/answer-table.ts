/** The answer of a decision, as a table for a person. */
import { styleText } from 'node:util';
import { getNodeValue, type Node, parseTree } from 'jsonc-parser';
import { printable } from '../log/printable.ts';

const BAR_CELLS = 20;
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** The most options of a choice that are shown, the likeliest first; the others are only counted. */
const MAX_OPTIONS = 10;

interface Answer {
  readonly type: string;
  readonly confidence: number;
  readonly score?: number;
  readonly legend?: Readonly<Record<string, string>>;
}

interface Option {
  readonly name: string;
  readonly probability: number;
}

/**
 * Returns a block of lines for each answer, in the order of the response: the id, the answer and its confidence, then a
 * bar for each option.
 *
 * @param body - The response of `POST /v1/systemone`.
 */
export function answerTable(body: Buffer, { colors }: { readonly colors: boolean }): string {
  const root = parseTree(body.toString('utf8'));
  // `JSON.parse` would move names that look like integers to the front.
  const answers = root ? members(member(root, 'answers')) : [];
  const blocks = answers.map(([id, node]) => answerBlock(id, node, colors));
  return `${[...blocks, usageLine(root && getNodeValue(root))].join('\n\n')}\n`;
}

function answerBlock(id: string, node: Node, colors: boolean): string {
  const answer = getNodeValue(node) as Answer;
  const options = members(member(node, 'probabilities')).map(([key, value]) => ({
    name: printable(optionName(answer, key)),
    probability: Number(getNodeValue(value)),
  }));
  // The sort keeps the order of equal probabilities, so the first of them is the answer, as on the wire.
  const byProbability = options.toSorted((one, other) => other.probability - one.probability);
  const best = byProbability[0]?.name ?? '';
  const shown = answer.type === 'choice' ? byProbability.slice(0, MAX_OPTIONS) : options;
  const score = answer.score === undefined ? '' : `, score ${answer.score.toFixed(2)} of ${options.length - 1}`;
  const bold = (text: string) => (colors ? styleText('bold', text, { validateStream: false }) : text);
  const title = `${printable(id)}  ${bold(best)}  confidence ${answer.confidence.toFixed(2)}${score}`;
  const hidden = options.length - shown.length;
  const width = Math.max(...shown.map(({ name }) => [...name].length));
  const lines = shown.map((option) => optionLine(option, { width, bold: option.name === best ? bold : String }));
  return [title, ...lines, ...(hidden > 0 ? [`  and ${hidden} less likely`] : [])].join('\n');
}

function optionName({ type, legend }: Answer, key: string): string {
  if (type === 'noul') return key === 'true' ? 'yes' : 'no';
  return legend?.[key] ?? key;
}

function optionLine(
  { name, probability }: Option,
  { width, bold }: { readonly width: number; readonly bold: (text: string) => string },
): string {
  const padding = ' '.repeat(width - [...name].length);
  const percent = `${(probability * 100).toFixed(1)}%`;
  return `  ${bold(name)}${padding}  ${textBar(probability)}  ${percent.padStart(6)}`;
}

function textBar(probability: number): string {
  const eighths = Math.round(probability * BAR_CELLS * 8);
  const filled = '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
  return filled.padEnd(BAR_CELLS);
}

function usageLine(response: {
  readonly usage: { readonly input_tokens: number; readonly server_ms: number; readonly truncated_tokens?: number };
}): string {
  const { input_tokens, server_ms, truncated_tokens } = response.usage;
  const cut = truncated_tokens
    ? `, ${truncated_tokens} more were cut off: the text is longer than the model reads`
    : '';
  return `${input_tokens} tokens in ${server_ms} ms${cut}`;
}

function member(node: Node, name: string): Node | undefined {
  return members(node).find(([key]) => key === name)?.[1];
}

function members(node: Node | undefined): [name: string, value: Node][] {
  return (node?.children ?? []).flatMap(({ children }) => {
    const [key, value] = children ?? [];
    return key && value ? [[String(key.value), value] as [string, Node]] : [];
  });
}
