/**
 * Parquet: rows are read page by page, so that only a page of each needed column is in memory, however many rows the
 * file has.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { type FileMetaData, parquetMetadata, parquetSchema, type RowGroup, type SchemaTree } from 'hyparquet';
import { assembleNested } from 'hyparquet/src/assemble.js';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getTreePath } from 'hyparquet/src/schema.js';
import { Refusal } from '../refusal.ts';
import { fingerprintBefore, readPart } from './file-part.ts';
import { objectText, valueText } from './json-text.ts';
import { ColumnReader } from './parquet/column.ts';
import { Damage, damageReason, isReadError } from './parquet/damage.ts';
import { isLarger } from './parquet/lazy.ts';
import { atLeast } from './parquet/page-check.ts';
import { structEnd } from './parquet/thrift.ts';
import {
  badRow,
  type ColumnType,
  type InputColumn,
  type Position,
  type Row,
  type Selection,
  type Source,
} from './row.ts';

/** The number of rows taken from their pages at once; nested values are assembled for this many rows. */
const SLICE_ROWS = 256;
/** The largest size of all decoded pages together, in bytes; DuckDB writes pages of up to 100 MB. */
const MAX_HELD_BYTES = 192 * 1024 * 1024;
/**
 * The largest footer, in bytes. A footer has a few hundred bytes for each column of each row group, and takes many
 * times that as objects.
 */
const MAX_FOOTER_BYTES = 8 * 1024 * 1024;

interface ParquetOptions extends Selection {
  readonly path: string;
  /** The largest row, in bytes; a larger one is a bad row, and its text is not made. */
  readonly maxRowBytes: number;
}

type Values = Readonly<Record<string, unknown>>;

interface Table {
  readonly options: ParquetOptions;
  readonly handle: FileHandle;
  readonly metadata: FileMetaData;
  readonly tree: SchemaTree;
  readonly names: readonly string[];
  readonly columns: readonly InputColumn[];
}

/**
 * Opens the file as a source of rows, counted from 1.
 *
 * @throws Refusal when it is not a Parquet file or lacks a column that was asked for.
 */
export async function openParquet(options: ParquetOptions): Promise<Source> {
  const handle = await open(options.path);
  try {
    return await openTable(options, handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function openTable(options: ParquetOptions, handle: FileHandle): Promise<Source> {
  const { path, state, keep } = options;
  const { size } = await handle.stat();
  const { metadata, tree, count } = await readMetadata(path, { handle, size });
  const names = tree.children.map(({ element }) => element.name);
  for (const name of [...state, ...(keep ?? [])]) {
    if (names.includes(name)) continue;
    throw new Refusal(`${path}: no column ${JSON.stringify(name)}; there are ${names.join(', ')}`);
  }
  const columns = tree.children.map(inputColumn).filter(({ name }) => keep === undefined || keep.includes(name));
  return {
    columns,
    rows: (from) => rows({ options, handle, metadata, tree, names, columns }, from),
    share: ({ row }) => (count === 0 ? 1 : row / count),
    // The footer at the end of the file describes all of its contents.
    fingerprint: () => fingerprintBefore(handle, size),
    close: () => handle.close(),
  };
}

interface Metadata {
  readonly metadata: FileMetaData;
  readonly tree: SchemaTree;
  /** The number of rows. */
  readonly count: number;
}

async function readMetadata(
  path: string,
  { handle, size }: { readonly handle: FileHandle; readonly size: number },
): Promise<Metadata> {
  try {
    const end = await readPart(handle, Math.max(0, size - 8), size);
    if (end.length < 8 || end.toString('latin1', 4) !== 'PAR1') throw new Damage('it does not end as one');
    const length = end.readUInt32LE(0);
    if (length > size - 8) throw new Damage('its footer is longer than the file');
    if (length > MAX_FOOTER_BYTES) throw new Damage(`its footer has ${length} bytes, the limit is ${MAX_FOOTER_BYTES}`);
    const footer = await readPart(handle, size - 8 - length, size);
    structEnd(footer.subarray(0, length), 0);
    const metadata = parquetMetadata(footer);
    return { metadata, tree: parquetSchema(metadata), count: countRows(metadata) };
  } catch (error) {
    if (isReadError(error)) throw error;
    throw new Refusal(`${path}: not a Parquet file: ${damageReason(error)}`);
  }
}

/** Returns the number of rows that the row groups have, since not every writer records the total. */
function countRows({ row_groups, schema }: FileMetaData): number {
  const isNamed = schema.every(({ name }) => typeof name === 'string');
  if (!isNamed) throw new Damage('it has a column without a name');
  return row_groups.reduce((sum, group) => sum + atLeast(0, group.num_rows), 0);
}

async function* rows(table: Table, from: Position): AsyncGenerator<Row> {
  const { options, metadata } = table;
  let start = 0;
  // Counted from 0.
  let row = from.row;
  try {
    for (const group of metadata.row_groups) {
      const end = start + Number(group.num_rows);
      if (row < end) {
        for await (const values of groupRows(table, group, row - start)) {
          row += 1;
          yield tableRow(table, { number: row, values });
        }
      }
      start = end;
    }
  } catch (error) {
    if (isReadError(error)) throw error;
    throw new Refusal(`${options.path}: row ${row + 1} cannot be read: ${damageReason(error)}`, { cause: error });
  }
}

/** Yields the rows of a group after the first `skip`. */
async function* groupRows(table: Table, group: RowGroup, skip: number): AsyncGenerator<Values> {
  const columns = groupColumns(table, group);
  const readers = columns.flatMap((column) => column.readers);
  for (const reader of readers) await named(reader.path, () => passOver(reader, skip));
  for (let left = Number(group.num_rows) - skip; left > 0; ) {
    for (const reader of readers) await named(reader.path, () => reader.fill(0));
    const count = Math.min(left, SLICE_ROWS, ...readers.map(({ ready }) => ready));
    const slices = await Promise.all(
      columns.map(async (column) => [column.name, await named([column.name], () => slice(column, count))] as const),
    );
    for (let at = 0; at < count; at += 1) yield Object.fromEntries(slices.map(([name, values]) => [name, values[at]]));
    left -= count;
  }
}

async function passOver(reader: ColumnReader, skip: number): Promise<void> {
  for (let left = skip; left > 0; ) {
    left -= await reader.fill(left);
    left -= reader.take(Math.min(left, reader.ready)).length;
  }
}

interface GroupColumn {
  readonly name: string;
  readonly tree: SchemaTree;
  /** The readers of the stored columns: one, or several for a nested column. */
  readonly readers: readonly ColumnReader[];
}

function groupColumns({ options, handle, tree, names, columns }: Table, group: RowGroup): GroupColumn[] {
  const { state } = options;
  const needed = new Set(state.length === 0 ? names : [...state, ...columns.map(({ name }) => name)]);
  const all: ColumnReader[] = [];
  const room = () => MAX_HELD_BYTES - all.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
  return tree.children
    .filter(({ element }) => needed.has(element.name))
    .map((child) => {
      const name = child.element.name;
      const chunks = group.columns.filter(({ meta_data }) => meta_data?.path_in_schema[0] === name);
      const readers = chunks.map((chunk) => columnReader({ chunk, tree, handle, room, rows: Number(group.num_rows) }));
      requireColumns(child, readers);
      all.push(...readers);
      return { name, tree: child, readers };
    });
}

interface ReaderParts {
  readonly chunk: RowGroup['columns'][number];
  readonly tree: SchemaTree;
  readonly handle: FileHandle;
  readonly room: () => number;
  readonly rows: number;
}

function columnReader({ chunk, tree, handle, room, rows }: ReaderParts): ColumnReader {
  const { meta_data: metadata, file_path, crypto_metadata } = chunk;
  if (file_path) throw new Damage('its columns are in other files');
  if (metadata === undefined || crypto_metadata) throw new Damage('it is encrypted');
  const schemaPath = getTreePath(tree, metadata.path_in_schema);
  return new ColumnReader({ file: handle, metadata, schemaPath, room, rows });
}

/**
 * Checks that each stored column exists exactly once and that none is a VARIANT, whose parts could refer to each other
 * without end.
 */
function requireColumns(tree: SchemaTree, readers: readonly ColumnReader[]): void {
  const wanted = leaves(tree).map(({ path }) => path.join('.'));
  const found = readers.map(({ path }) => path.join('.'));
  if (wanted.length !== found.length || wanted.some((path) => !found.includes(path))) {
    throw new Damage(`column ${JSON.stringify(tree.element.name)} is missing or there twice`);
  }
  if (hasVariant(tree)) throw new Damage(`column ${JSON.stringify(tree.element.name)} is a VARIANT, which is not read`);
}

function leaves(tree: SchemaTree): SchemaTree[] {
  return tree.children.length === 0 ? [tree] : tree.children.flatMap(leaves);
}

function hasVariant({ element, children }: SchemaTree): boolean {
  return element.logical_type?.type === 'VARIANT' || children.some(hasVariant);
}

async function named<Result>(path: readonly string[], work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isReadError(error)) throw error;
    throw new Damage(`column ${JSON.stringify(path.join('.'))}: ${damageReason(error)}`, { cause: error });
  }
}

/** Returns the next `count` values of a column; those of a nested column are assembled. */
function slice({ name, tree, readers }: GroupColumn, count: number): ArrayLike<unknown> {
  const parts = new Map(readers.map((reader) => [reader.path.join('.'), reader.take(count)]));
  if (tree.children.length > 0) assembleNested(parts, tree, DEFAULT_PARSERS);
  const values = parts.get(name);
  if (values?.length === count) return values;
  throw new Damage('its parts do not fit together');
}

interface NumberedRow {
  readonly number: number;
  readonly values: Values;
}

/** Returns the row as texts, which keep nothing of its pages alive: these may be a thousand times as long. */
function tableRow(table: Table, { number, values }: NumberedRow): Row {
  const { maxRowBytes } = table.options;
  const lost = { number, end: { row: number, offset: 0 }, inputJson: noInput };
  const texts = isLarger(values, maxRowBytes) ? undefined : rowTexts(table, values);
  if (texts === undefined || Buffer.byteLength(texts.stateJson) > maxRowBytes) {
    return badRow(lost, `row larger than ${maxRowBytes} bytes (max_body_bytes)`);
  }
  return texts.isJson ? goodRow(table.options, lost, texts) : badRow(lost, 'not valid JSON');
}

const noInput = () => 'null';

interface RowTexts {
  readonly stateJson: string;
  readonly cells: readonly string[];
  /** False if a value that should be JSON is not. */
  readonly isJson: boolean;
}

function rowTexts({ options, names, columns }: Table, values: Values): RowTexts {
  const { state } = options;
  const [first, ...others] = state.length === 0 ? names : state;
  const isOne = state.length === 1 && first !== undefined;
  try {
    const wanted = [first ?? '', ...others];
    const stateJson = isOne
      ? valueText(values[first])
      : objectText(wanted.map((name) => [name, valueText(values[name])]));
    return { stateJson, cells: columns.map(({ name, type }) => cellText(type, values[name])), isJson: true };
  } catch {
    return { stateJson: '', cells: [], isJson: false };
  }
}

function goodRow(
  { state }: Selection,
  read: Omit<Row & { problem?: undefined }, 'stateJson' | 'cells'>,
  texts: RowTexts,
): Row {
  const { stateJson, cells } = texts;
  const [first] = state;
  const inputJson =
    state.length === 1 && first !== undefined ? () => objectText([[first, stateJson]]) : () => stateJson;
  return { ...read, inputJson, stateJson, cells };
}

/**
 * Returns the value as text: an empty text for null, and a text value with `=` before it, so that an empty text differs
 * from null.
 */
function cellText(type: ColumnType, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (type === 'text') return `=${value}`;
  if (type === 'timestamp' && value instanceof Date) return value.toISOString();
  return type === 'json' ? valueText(value) : String(value);
}

function inputColumn({ element, children }: SchemaTree): InputColumn {
  return {
    name: element.name,
    type: children.length > 0 || element.repetition_type === 'REPEATED' ? 'json' : leafType(element),
  };
}

const LOGICAL_TYPES: Readonly<Record<string, ColumnType>> = {
  STRING: 'text',
  UTF8: 'text',
  ENUM: 'text',
  TIMESTAMP: 'timestamp',
};
const PLAIN_TYPES: Readonly<Record<string, ColumnType>> = {
  BOOLEAN: 'boolean',
  BYTE_ARRAY: 'text',
  INT32: 'int32',
  INT64: 'int64',
  FLOAT: 'float',
  DOUBLE: 'double',
};

/**
 * Returns the type that the output keeps for a column. All other types become JSON: dates, decimals, unsigned numbers,
 * identifiers.
 */
function leafType({ type, converted_type, logical_type }: SchemaTree['element']): ColumnType {
  const logical = logical_type?.type ?? converted_type?.replace(/_M\w+$/, '');
  const isSigned = logical_type?.type === 'INTEGER' ? logical_type.isSigned : /^INT_\d+$/.test(logical ?? '');
  if (logical === undefined || isSigned) return PLAIN_TYPES[type ?? ''] ?? 'json';
  return LOGICAL_TYPES[logical] ?? 'json';
}
