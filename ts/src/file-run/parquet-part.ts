/** One part of a Parquet output, made from the file that collects its rows. */
import { open, rename, rm } from 'node:fs/promises';
import { type BasicType, fileWriter, parquetWriteRows } from 'hyparquet-writer';
import { lines } from './lines.ts';
import type { ColumnType } from './row.ts';
import { columnNames, type TableColumns } from './sink.ts';

/** JSON stays text: a number in it may be larger than JavaScript's largest exact number. */
const TYPES: Readonly<Record<ColumnType, BasicType>> = {
  text: 'STRING',
  boolean: 'BOOLEAN',
  int32: 'INT32',
  int64: 'INT64',
  float: 'FLOAT',
  double: 'DOUBLE',
  timestamp: 'TIMESTAMP',
  json: 'STRING',
};

/** The number of rows that are encoded at once. */
const GROUP_ROWS = 10_000;

/**
 * Writes the part at `path` from the rows in the file `gathered`. The part appears under its name complete or not at
 * all.
 */
export async function writePart(path: string, gathered: string, columns: TableColumns): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    await writeRows(temporary, gathered, columns);
    await rename(temporary, path);
  } catch (error) {
    // This frees space on a full disk, for the journal and for the person who repairs it.
    await rm(temporary, { force: true });
    throw error;
  }
}

async function writeRows(path: string, gathered: string, columns: TableColumns): Promise<void> {
  await parquetWriteRows({
    rows: partRows(gathered, columns),
    columns: columnNames(columns).map(({ name, type }) => ({ name, type: TYPES[type] })),
    rowGroupSize: GROUP_ROWS,
    writer: fileWriter(path),
    createdBy: 'svc batch',
  });
  const file = await open(path, 'r+');
  await file.datasync();
  await file.close();
}

async function* partRows(gathered: string, columns: TableColumns): AsyncGenerator<Record<string, unknown>> {
  const all = columnNames(columns);
  const inputs = columns.input.length;
  for await (const { bytes } of lines({ path: gathered, from: 0, maxBytes: Number.POSITIVE_INFINITY })) {
    const cells: unknown[] = JSON.parse(String(bytes));
    yield Object.fromEntries(
      all.map(({ name, type }, at) => [name, at < inputs ? inputValue(type, cells[at]) : answerValue(type, cells[at])]),
    );
  }
}

function answerValue(type: ColumnType, value: unknown): unknown {
  return type === 'int64' ? BigInt(value as number) : value;
}

/** Returns the Parquet value of a cell: the inverse of the source's conversion to text. */
function inputValue(type: ColumnType, cell: unknown): unknown {
  if (typeof cell !== 'string' || cell === '') return null;
  if (type === 'text') return cell.slice(1);
  if (type === 'json') return cell;
  if (type === 'boolean') return cell === 'true';
  if (type === 'int64') return BigInt(cell);
  return type === 'timestamp' ? new Date(cell) : Number(cell);
}
