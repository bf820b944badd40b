/** CSV: the first record names the columns, every other record is a row. */
import { CsvError, parse } from 'csv-parse';
import { Refusal } from '../refusal.ts';
import { type ByteInput, openFile, shareBefore } from './byte-input.ts';
import { objectText } from './json-text.ts';
import { badRow, type Position, type Row, type Selection, type Source } from './row.ts';

const CHUNK_BYTES = 256 * 1024;

/** The character that the decoder puts in the place of bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd';

interface CsvOptions extends Selection {
  readonly path: string;
  /** The bytes of the file, if they are not read from `path`. */
  readonly input?: ByteInput | undefined;
  readonly delimiter: string;
  /** The largest row, in bytes; without a limit, an unclosed quote would turn the rest of the file into one row. */
  readonly maxRowBytes: number;
}

interface CsvRecord {
  readonly cells: readonly string[];
  /** The byte offset at which the next record begins, from the start of the file. */
  readonly end: number;
}

/**
 * Opens the file as a source of rows, counted without the record that names the columns.
 *
 * @throws Refusal when the first record is missing, names a column twice, or lacks a column that was asked for.
 */
export async function openCsv({ input: given, ...options }: CsvOptions): Promise<Source> {
  const input = given ?? (await openFile(options.path));
  try {
    return await tableSource({ ...options, input });
  } catch (error) {
    await input.close();
    throw error;
  }
}

/** The options of a table whose bytes are open. */
type OpenCsv = CsvOptions & { readonly input: ByteInput };

async function tableSource(options: OpenCsv): Promise<Source> {
  const { input } = options;
  const header = await firstRecord(options);
  const keep = options.keep ?? header.cells;
  const table: Table = {
    names: header.cells,
    state: columnIndexes(options, header.cells, options.state),
    keep: columnIndexes(options, header.cells, keep),
  };
  return {
    columns: keep.map((name) => ({ name, type: 'text' })),
    rows: (from) => rows(options, { table, from: { row: from.row, offset: Math.max(from.offset, header.end) } }),
    share: ({ offset }) => shareBefore(input, offset),
    fingerprint: ({ offset }) => input.fingerprint(offset),
    close: () => input.close(),
  };
}

async function firstRecord(options: OpenCsv): Promise<CsvRecord> {
  for await (const record of records(options, START_OF_FILE)) {
    const twice = record.cells.find((name, at) => record.cells.indexOf(name) !== at);
    if (twice === undefined) return record;
    throw new Refusal(`${options.path}: column ${JSON.stringify(twice)} twice`);
  }
  throw new Refusal(`${options.path}: the first row must name the columns, and there is none`);
}

const START_OF_FILE: Position = { row: -1, offset: 0 };

function columnIndexes({ path }: CsvOptions, names: readonly string[], wanted: readonly string[]): readonly number[] {
  return wanted.map((name) => {
    const index = names.indexOf(name);
    if (index < 0) throw new Refusal(`${path}: no column ${JSON.stringify(name)}; there are ${names.join(', ')}`);
    return index;
  });
}

/** The names of the columns, and the indexes of those that form the state and of those that are kept. */
interface Table {
  readonly names: readonly string[];
  readonly state: readonly number[];
  readonly keep: readonly number[];
}

interface RowsFrom {
  readonly table: Table;
  readonly from: Position;
}

async function* rows(options: OpenCsv, { table, from }: RowsFrom): AsyncGenerator<Row> {
  let { row: number, offset } = from;
  for await (const { cells, end } of records(options, from)) {
    number += 1;
    const read = { number, end: { row: number, offset: end }, inputJson: () => rowText(table.names, cells) };
    if (cells.length !== table.names.length) {
      yield badRow(read, `${cells.length} cells, the first row has ${table.names.length}`);
    } else if (await isBroken(options.input, { cells, start: offset, end })) {
      yield badRow(read, 'not UTF-8');
    } else {
      yield { ...read, stateJson: stateText(table, cells), cells: table.keep.map((index) => cells[index] ?? '') };
    }
    offset = end;
  }
}

function rowText(names: readonly string[], cells: readonly string[]): string {
  return objectText(cells.map((cell, at) => [names[at] ?? `${at + 1}`, JSON.stringify(cell)]));
}

function stateText({ names, state }: Table, cells: readonly string[]): string {
  const [first, ...others] = state;
  if (first === undefined) return rowText(names, cells);
  if (others.length === 0) return JSON.stringify(cells[first] ?? '');
  return objectText(state.map((index) => [names[index] ?? '', JSON.stringify(cells[index] ?? '')]));
}

/**
 * Whether a record has bytes that are not UTF-8. The parser replaces such bytes, but the text itself may also contain
 * the replacement character, so the record's bytes are read again.
 */
async function isBroken(
  input: ByteInput,
  { cells, start, end }: { readonly cells: readonly string[]; readonly start: number; readonly end: number },
): Promise<boolean> {
  if (!cells.some((cell) => cell.includes(REPLACEMENT))) return false;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(await input.part(start, end));
    return false;
  } catch {
    return true;
  }
}

/** Yields the records from a position on, in order. A quote inside an unquoted cell is a part of its text. */
async function* records({ path, input, delimiter, maxRowBytes }: OpenCsv, from: Position): AsyncGenerator<CsvRecord> {
  let found: CsvRecord[] = [];
  let count = 0;
  const parser = parse({
    bom: true,
    delimiter,
    max_record_size: maxRowBytes,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    on_record: (cells, { bytes }) => {
      found.push({ cells, end: from.offset + bytes });
      count += 1;
      // The record and its offset are already kept here, so the parser need not pass it on.
      return undefined;
    },
  });
  parser.on('error', () => {});
  const take = () => {
    const taken = found;
    found = [];
    return taken;
  };
  try {
    for await (const chunk of input.chunks(from.offset, CHUNK_BYTES)) {
      await new Promise<void>((resolve, reject) => parser.write(chunk, (error) => (error ? reject(error) : resolve())));
      yield* take();
    }
    await new Promise<void>((resolve, reject) => {
      parser.once('error', reject);
      parser.end(resolve);
    });
    yield* take();
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    yield* take();
    throw new Refusal(`${path}: row ${from.row + count + 1}: ${csvProblem(error, maxRowBytes)}`);
  } finally {
    parser.destroy();
  }
}

function csvProblem({ code, message }: CsvError, maxRowBytes: number): string {
  if (code === 'CSV_QUOTE_NOT_CLOSED') return 'its opening quote is never closed';
  if (code === 'CSV_MAX_RECORD_SIZE') {
    return `larger than ${maxRowBytes} bytes (max_body_bytes); is a quote not closed?`;
  }
  return message.replaceAll(/\s+/g, ' ');
}
