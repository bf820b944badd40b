/** Parquet: rows in slices, so that not more than the compressed columns of one row group are in memory. */
import { type FileHandle, open } from 'node:fs/promises';
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type SchemaTree,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { Refusal } from '../refusal.ts';
import { fingerprintBefore, readPart } from './file-part.ts';
import { objectText, valueText } from './json-text.ts';
import type { ColumnType, InputColumn, Position, Row, Selection, Source } from './row.ts';

/** Rows that are decoded at once. Each slice skips the pages before it, which costs next to nothing. */
const SLICE_ROWS = 2000;

export interface ParquetOptions extends Selection {
  readonly path: string;
}

type Values = Readonly<Record<string, unknown>>;

interface Table {
  readonly file: AsyncBuffer;
  readonly metadata: FileMetaData;
  readonly names: readonly string[];
  readonly state: readonly string[];
  readonly columns: readonly InputColumn[];
}

/**
 * The file as rows, counted from 1.
 *
 * @throws Refusal when it is no Parquet file, or has not a column that is asked for.
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

async function openTable({ path, state, keep }: ParquetOptions, handle: FileHandle): Promise<Source> {
  const { size } = await handle.stat();
  const file = fileBuffer(handle, size);
  const metadata = await readMetadata(path, file);
  const tree = parquetSchema(metadata).children;
  const names = tree.map(({ element }) => element.name);
  for (const name of [...state, ...(keep ?? [])]) {
    if (names.includes(name)) continue;
    throw new Refusal(`${path}: no column ${JSON.stringify(name)}; there are ${names.join(', ')}`);
  }
  const columns = tree.map(inputColumn).filter(({ name }) => keep === undefined || keep.includes(name));
  const count = Number(metadata.num_rows);
  return {
    columns,
    rows: (from) => rows({ file, metadata, names, state, columns }, from),
    share: ({ row }) => (count === 0 ? 1 : row / count),
    // What it is made of stands at its end.
    fingerprint: () => fingerprintBefore(handle, size),
    close: () => handle.close(),
  };
}

function fileBuffer(handle: FileHandle, size: number): AsyncBuffer {
  return {
    byteLength: size,
    async slice(start, end = size) {
      const part = await readPart(handle, start, end);
      return part.buffer.slice(part.byteOffset, part.byteOffset + part.length) as ArrayBuffer;
    },
  };
}

async function readMetadata(path: string, file: AsyncBuffer): Promise<FileMetaData> {
  try {
    return await parquetMetadataAsync(file);
  } catch (error) {
    throw new Refusal(`${path}: not a Parquet file: ${error instanceof Error ? error.message : error}`);
  }
}

async function* rows(table: Table, from: Position): AsyncGenerator<Row> {
  const { file, metadata, names, state, columns } = table;
  const needed = state.length === 0 ? [...names] : [...new Set([...state, ...columns.map(({ name }) => name)])];
  let start = 0;
  for (const group of metadata.row_groups) {
    const groupEnd = start + Number(group.num_rows);
    for (let row = Math.max(start, from.row); row < groupEnd; row += SLICE_ROWS) {
      const rowEnd = Math.min(row + SLICE_ROWS, groupEnd);
      const slice = { rowStart: row, rowEnd, columns: needed, useOffsetIndex: true };
      const read: Values[] = await parquetReadObjects({ file, metadata, compressors, ...slice });
      for (const [at, values] of read.entries()) yield tableRow(table, { number: row + at + 1, values });
    }
    start = groupEnd;
  }
}

function tableRow(
  { names, state, columns }: Table,
  { number, values }: { readonly number: number; readonly values: Values },
): Row {
  const text = (wanted: readonly string[]) => objectText(wanted.map((name) => [name, valueText(values[name])]));
  const [first, ...others] = state;
  return {
    number,
    end: { row: number, offset: 0 },
    inputJson: () => text(state.length === 0 ? names : state),
    stateJson:
      first !== undefined && others.length === 0 ? valueText(values[first]) : text(first === undefined ? names : state),
    cells: columns.map(({ name, type }) => cellText(type, values[name])),
  };
}

/** The value as text; empty for none, and a text with a sign before it, so that one that is empty is not none. */
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

/** What the output can have as it is. All else is JSON there: dates, decimals, unsigned numbers, identifiers. */
function leafType({ type, converted_type, logical_type }: SchemaTree['element']): ColumnType {
  const logical = logical_type?.type ?? converted_type?.replace(/_M\w+$/, '');
  const isSigned = logical_type?.type === 'INTEGER' ? logical_type.isSigned : /^INT_\d+$/.test(logical ?? '');
  if (logical === undefined || isSigned) return PLAIN_TYPES[type ?? ''] ?? 'json';
  return LOGICAL_TYPES[logical] ?? 'json';
}
