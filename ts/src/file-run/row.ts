/** The rows of an input and their problems, the same for every file format. */

/**
 * A position in the input: the numbers of rows and of bytes before it. The bytes stay 0 in a format that is not read in
 * order.
 */
export interface Position {
  readonly row: number;
  readonly offset: number;
}

export const START: Position = { row: 0, offset: 0 };

/** The reason why a row has no answer. */
export interface Problem {
  /** A code of `docs/errors.md`, or `bad_row` for a row that cannot be read. */
  readonly code: string;
  readonly message: string;
}

interface ReadRow {
  /** The row's number in the input, counted from 1. */
  readonly number: number;
  /** The position at which the next row begins. */
  readonly end: Position;
  /** The row as JSON text, for the file of errors. */
  readonly inputJson: () => string;
}

/** A row that was read, so that the questions can be asked about it. */
export interface GoodRow extends ReadRow {
  readonly problem?: undefined;
  /** The state that the questions are about, as JSON text. */
  readonly stateJson: string;
  /** The values that the output repeats, one text for each of the source's columns. */
  readonly cells: readonly string[];
}

/** A row that could not be read, with the reason. */
export interface BadRow extends ReadRow {
  readonly problem: Problem;
}

export type Row = GoodRow | BadRow;

/** A column of the input that the output repeats. */
export interface InputColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** The type of a cell's text; `json` stands for any value. */
export type ColumnType = 'text' | 'boolean' | 'int32' | 'int64' | 'float' | 'double' | 'timestamp' | 'json';

/** An open input. */
export interface Source {
  /** The columns that the `cells` of its rows belong to. */
  readonly columns: readonly InputColumn[];
  rows(from: Position): AsyncIterable<Row>;
  /** Returns the share of the input before a position, from 0 to 1. */
  share(position: Position): number;
  /** Returns a digest that shows whether the input before a position is still the same. */
  fingerprint(position: Position): Promise<string>;
  close(): Promise<void>;
}

/** The columns of a row that form the state, and those that the output repeats. */
export interface Selection {
  /**
   * The columns that form the state: with none, the state is the whole row; with one, its value; with several, an
   * object of them.
   */
  readonly state: readonly string[];
  /** The columns that the output repeats; undefined for all. */
  readonly keep: readonly string[] | undefined;
}

/** Returns a row that could not be read, with `message` as the reason. */
export function badRow(read: ReadRow, message: string): BadRow {
  return { ...read, problem: { code: 'bad_row', message } };
}
