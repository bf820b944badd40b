/** How many bytes of a Parquet column are read and held. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { type ColumnMetaData, parquetMetadata, parquetSchema, type SchemaTree } from 'hyparquet';
import { parquetWriteFile } from 'hyparquet-writer';
import { ColumnReader } from '../../src/file-run/parquet/column.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KIB = 1024;

/** A file that has `bytes` at the offset `start`, in memory, and counts how often it is read. */
function fileOf(bytes: Uint8Array, start = 0) {
  const file = {
    reads: 0,
    async read(buffer: Buffer, offset: number, length: number, position: number) {
      file.reads += 1;
      const part = bytes.subarray(position - start, position - start + length);
      buffer.set(part, offset);
      return { bytesRead: part.length };
    },
  };
  return file;
}

/** Returns the bytes of a file with one column of texts, and what its reader needs to know. */
function columnOf(t: TestContext, texts: readonly string[], options = {}) {
  const filename = join(temporaryFolder(t), 'rows.parquet');
  const columnData = [{ name: 'text', data: [...texts], type: 'STRING' as const, nullable: false }];
  parquetWriteFile({ filename, columnData, codec: 'UNCOMPRESSED', ...options });
  const bytes = readFileSync(filename);
  const about = parquetMetadata(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer);
  const root = parquetSchema(about);
  const schemaPath = [root, ...root.children] as SchemaTree[];
  const metadata = about.row_groups[0]?.columns[0]?.meta_data as ColumnMetaData;
  return { bytes, schemaPath, metadata, rows: texts.length };
}

interface Given {
  readonly bytes: Uint8Array;
  readonly metadata: ColumnMetaData;
  readonly schemaPath: SchemaTree[];
  readonly rows: number;
}

function readerOf({ bytes, ...column }: Given, room: number, start = 0) {
  const file = fileOf(bytes, start);
  const reader = new ColumnReader({ ...column, file: file as unknown as FileHandle, room: () => room });
  return { file, reader };
}

suite('a page', () => {
  test('is read where there is room for its bytes and for its values, and not with a byte less', async (t) => {
    const column = columnOf(t, ['x'.repeat(4000), 'y'.repeat(4000)]);
    const { reader } = readerOf(column, 1e9);
    await reader.fill(0);
    const held = reader.heldBytes;
    assert.deepEqual(reader.take(2).map(String), ['x'.repeat(4000), 'y'.repeat(4000)]);
    assert.ok(held > 8000 && held < 20_000, String(held));
    await readerOf(column, held).reader.fill(0);
    for (const room of [held - 1, 8000, 0]) {
      const expected = new RegExp(`^Error: its pages take \\d+ bytes more than the ${room} that are left for them$`);
      await assert.rejects(readerOf(column, room).reader.fill(0), expected);
    }
  });

  test('may lie anywhere in a large file', async (t) => {
    const column = columnOf(t, ['x', 'y']);
    const { metadata } = column;
    const start = 2 ** 40;
    const moved = { ...metadata, data_page_offset: metadata.data_page_offset + BigInt(start) };
    const { reader } = readerOf({ ...column, metadata: moved }, 1e9, start);
    await reader.fill(0);
    assert.deepEqual(reader.take(2).map(String), ['x', 'y']);
  });

  test('without room is refused before its body is read', async (t) => {
    const { file, reader } = readerOf(columnOf(t, ['x'.repeat(4000)]), 100);
    await assert.rejects(reader.fill(0), /bytes more than/);
    assert.equal(file.reads, 1);
  });
});

suite('the header of a page', () => {
  /** A header whose first field is a text of so many bytes. */
  function withText(t: TestContext, length: number): Given {
    const column = columnOf(t, ['a']);
    const header = [0x18, (length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14];
    const bytes = Buffer.concat([Buffer.from(header), Buffer.alloc(length, 65), Buffer.alloc(4000 * KIB)]);
    const where = { data_page_offset: 0n, total_compressed_size: BigInt(bytes.length) };
    return { ...column, bytes, metadata: { ...column.metadata, ...where, dictionary_page_offset: 0n } };
  }

  for (const [length, reads] of [
    [3 * KIB, 1],
    [60 * KIB, 2],
    [1000 * KIB, 3],
  ] as const) {
    test(`of ${length / KIB} KiB is read in ${reads} steps`, async (t) => {
      const { file, reader } = readerOf(withText(t, length), 1e9);
      // No header has such a field, so it is refused once it has been read to its end.
      await assert.rejects(reader.fill(0), (error: Error) => !/cut short/.test(error.message));
      assert.equal(file.reads, reads);
    });
  }

  test('of more than 1 MiB is not read to its end', async (t) => {
    const { file, reader } = readerOf(withText(t, 1025 * KIB), 1e9);
    await assert.rejects(reader.fill(0), /cut short/);
    assert.equal(file.reads, 3);
  });

  test('that makes no sense is refused at once', async (t) => {
    const column = withText(t, 0);
    const bytes = Buffer.alloc(4000 * KIB, 0x1c);
    const { file, reader } = readerOf({ ...column, bytes }, 1e9);
    await assert.rejects(reader.fill(0), /too deep/);
    assert.equal(file.reads, 1);
  });

  test('that ends with the column is refused after one look', async (t) => {
    const column = withText(t, 0);
    const bytes = Buffer.from([0x15, 2]);
    const metadata = { ...column.metadata, total_compressed_size: 2n };
    const { file, reader } = readerOf({ ...column, bytes, metadata }, 1e9);
    await assert.rejects(reader.fill(0), /cut short/);
    assert.equal(file.reads, 1);
  });
});
