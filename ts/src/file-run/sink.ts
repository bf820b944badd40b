/** The rows of the output, one kind for each format. */
import { stringify } from 'csv-stringify/sync';
import { Refusal } from '../refusal.ts';
import type { AnswerColumn, Answered } from './answer.ts';
import type { ColumnType, GoodRow, InputColumn } from './row.ts';

/** A converter of answered rows to text. */
export interface Sink {
  /** The text before the first row. */
  readonly head: string;
  text(row: GoodRow, answered: Answered): string;
}

/** The columns of a table: first those of the input, then the row's number, then those of the answers. */
export interface TableColumns {
  readonly input: readonly InputColumn[];
  readonly answers: readonly AnswerColumn[];
}

const ROW_COLUMN = 'svc.row';

/**
 * Returns the columns of a table with the columns `input` of the input and `answers` for the answers.
 *
 * @throws Refusal when two columns have the same name.
 */
export function tableColumns(input: readonly InputColumn[], answers: readonly AnswerColumn[]): TableColumns {
  const names = columnNames({ input, answers }).map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice === undefined) return { input, answers };
  throw new Refusal(`column ${JSON.stringify(twice)} would be in the output twice; rename the question, or see --keep`);
}

/** Returns all names and types, in the order of the output. */
export function columnNames({
  input,
  answers,
}: TableColumns): readonly { readonly name: string; readonly type: ColumnType }[] {
  return [...input, { name: ROW_COLUMN, type: 'int64' }, ...answers];
}

/**
 * Returns a sink that writes one JSON object a line: the row's number, the input, the answers as they came, and the
 * numbers of tokens that the model read and that were left out.
 */
export function jsonlSink(): Sink {
  return {
    head: '',
    text({ number, cells: [input] }, { answersJson, inputTokens, truncatedTokens }) {
      const row = input === undefined ? '' : `,"input":${input}`;
      const cut = truncatedTokens === 0 ? '' : `,"truncated_tokens":${truncatedTokens}`;
      return `{"row":${number}${row},"answers":${answersJson},"input_tokens":${inputTokens}${cut}}\n`;
    },
  };
}

export function csvSink(columns: TableColumns, delimiter: string): Sink {
  const line = (cells: readonly unknown[]) => stringify([[...cells]], { delimiter });
  return {
    head: line(columnNames(columns).map(({ name }) => name)),
    text: (row, answered) => line([...row.cells, row.number, ...answerCells(columns, answered)]),
  };
}

/**
 * Returns a sink that writes the lines of the file that collects the rows of a Parquet part: a row's cells, as a JSON
 * array.
 */
export function parquetSink(columns: TableColumns): Sink {
  return {
    head: '',
    text: (row, answered) => `${JSON.stringify([...row.cells, row.number, ...answerCells(columns, answered)])}\n`,
  };
}

function answerCells({ answers }: TableColumns, answered: Answered): (string | number | null)[] {
  const values = JSON.parse(answered.answersJson);
  return answers.map(({ value }) => value(values, answered) ?? null);
}
