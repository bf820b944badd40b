/** What is read and what comes of it, whatever the format of the files. */

/** Where reading goes on: after so many rows and so many bytes. Bytes stay 0 in a format that is not read in order. */
export interface Position {
  readonly row: number;
  readonly offset: number;
}

export const START: Position = { row: 0, offset: 0 };

/** Why a row has no answer. */
export interface Problem {
  /** One of `docs/errors.md`, or `bad_row` for one that cannot be read. */
  readonly code: string;
  readonly message: string;
}

interface ReadRow {
  /** Counted from 1, in the input. */
  readonly number: number;
  /** Where the next row begins. */
  readonly end: Position;
  /** The row as JSON text, for the file of errors. */
  readonly inputJson: () => string;
}

/** A row that can be asked about. */
export interface GoodRow extends ReadRow {
  readonly problem?: undefined;
  /** What the questions are about, as JSON text. */
  readonly stateJson: string;
  /** What the output repeats of it, one text for each of the source's columns. */
  readonly cells: readonly string[];
}

/** A row that cannot. */
export interface BadRow extends ReadRow {
  readonly problem: Problem;
}

export type Row = GoodRow | BadRow;

/** A column of the input that the output repeats. */
export interface InputColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** How a cell's text is to be understood; `json` is any value. */
export type ColumnType = 'text' | 'boolean' | 'int32' | 'int64' | 'float' | 'double' | 'timestamp' | 'json';

/** An input that is open. */
export interface Source {
  /** What `cells` of its rows are. */
  readonly columns: readonly InputColumn[];
  rows(from: Position): AsyncIterable<Row>;
  /** How much of it lies before a position, from 0 to 1. */
  share(position: Position): number;
  /** A digest of what was read last before a position: tells whether that is still the same. */
  fingerprint(position: Position): Promise<string>;
  close(): Promise<void>;
}

/** Which part of a row is the state, and which the output repeats. */
export interface Selection {
  /** None: the whole row. One: its value. Several: an object of them. */
  readonly state: readonly string[];
  /** Undefined: all. */
  readonly keep: readonly string[] | undefined;
}

/** A row that could not be read. */
export function badRow(read: ReadRow, message: string): BadRow {
  return { ...read, problem: { code: 'bad_row', message } };
}
