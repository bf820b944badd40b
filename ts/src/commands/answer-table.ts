/** The answer of a decision, as a table for a person. */
import { styleText } from 'node:util';
import { getNodeValue, type Node, parseTree } from 'jsonc-parser';
import { printable } from '../log/printable.ts';

const BAR_CELLS = 20;
/** The shortest bar, and the shortest name, on a narrow terminal. */
const MIN_BAR_CELLS = 4;
const MIN_NAME_CELLS = 8;
/** The cells of a line beside its name and its bar: the indent, the gaps and the percentage. */
const OTHER_CELLS = 12;
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

export interface TableOptions {
  readonly colors: boolean;
  /** The width of the terminal; without it lines are as long as their names. */
  readonly columns?: number | undefined;
}

/**
 * Returns a block of lines for each answer, in the order of the response: the id, the answer and its confidence, then a
 * bar for each option.
 *
 * @param body - The response of `POST /v1/systemone`.
 */
export function answerTable(body: Buffer, table: TableOptions): string {
  const root = parseTree(body.toString('utf8'));
  // `JSON.parse` would move names that look like integers to the front.
  const answers = root ? members(member(root, 'answers')) : [];
  const blocks = answers.map(([id, node]) => answerBlock(id, node, table));
  return `${[...blocks, usageLine(root && getNodeValue(root))].join('\n\n')}\n`;
}

function answerBlock(id: string, node: Node, { colors, columns }: TableOptions): string {
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
  const widths = widthsFor(Math.max(...shown.map(({ name }) => [...name].length)), columns);
  const lines = shown.map((option) => optionLine(option, { ...widths, bold: option.name === best ? bold : String }));
  return [title, ...lines, ...(hidden > 0 ? [`  and ${hidden} less likely`] : [])].join('\n');
}

function optionName({ type, legend }: Answer, key: string): string {
  if (type === 'noul') return key === 'true' ? 'yes' : 'no';
  return legend?.[key] ?? key;
}

/** The cells of a name, and those of a bar. */
interface Widths {
  readonly nameCells: number;
  readonly barCells: number;
}

/** Returns the widths with which names of up to `longest` cells and bars fit; the bars give way before the names do. */
function widthsFor(longest: number, columns = Number.POSITIVE_INFINITY): Widths {
  const room = columns - OTHER_CELLS;
  const barCells = Math.max(MIN_BAR_CELLS, Math.min(BAR_CELLS, room - longest));
  return { barCells, nameCells: Math.min(longest, Math.max(MIN_NAME_CELLS, room - barCells)) };
}

interface LineStyle extends Widths {
  readonly bold: (text: string) => string;
}

function optionLine({ name, probability }: Option, { nameCells, barCells, bold }: LineStyle): string {
  const letters = [...name];
  const shown = letters.length > nameCells ? `${letters.slice(0, nameCells - 1).join('')}…` : name;
  const padding = ' '.repeat(nameCells - Math.min(letters.length, nameCells));
  const percent = `${(probability * 100).toFixed(1)}%`;
  return `  ${bold(shown)}${padding}  ${textBar(probability, barCells)}  ${percent.padStart(6)}`;
}

function textBar(probability: number, cells: number): string {
  const eighths = Math.round(probability * cells * 8);
  const filled = '█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8];
  return filled.padEnd(cells);
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
