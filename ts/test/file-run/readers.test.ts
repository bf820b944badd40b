import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { parquetWriteFile } from 'hyparquet-writer';
import { openCsv } from '../../src/file-run/read-csv.ts';
import { openJsonl } from '../../src/file-run/read-jsonl.ts';
import { openParquet } from '../../src/file-run/read-parquet.ts';
import { type Position, type Row, type Selection, type Source, START } from '../../src/file-run/row.ts';
import { Refusal } from '../../src/refusal.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const ALL: Selection = { state: [], keep: undefined };

async function rowsOf(source: Source, from: Position = START): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const row of source.rows(from)) rows.push(row);
  return rows;
}

/** Returns the parts of a row that matter: its number, then its state and cells, or why it is bad. */
function told(row: Row): readonly unknown[] {
  if (row.problem) return [row.number, row.problem.message, row.inputJson()];
  return [row.number, row.stateJson, row.cells];
}

/** Fails unless reading from the end of any row gives the same rows as reading all of them. */
async function assertResumable(source: Source): Promise<void> {
  const all = await rowsOf(source);
  for (const [at, { end }] of all.entries()) {
    const rest = await rowsOf(source, end);
    assert.deepEqual(rest.map(told), all.slice(at + 1).map(told));
    assert.deepEqual(
      rest.map((row) => row.end),
      all.slice(at + 1).map((row) => row.end),
    );
  }
}

async function jsonl(t: TestContext, content: string | Buffer, selection = ALL, maxRowBytes = 100) {
  const path = join(temporaryFolder(t), 'rows.jsonl');
  writeFileSync(path, content);
  const source = await openJsonl({ path, maxRowBytes, ...selection });
  t.after(() => source.close());
  return source;
}

async function csv(t: TestContext, content: string | Buffer, selection = ALL, delimiter = ',') {
  const path = join(temporaryFolder(t), 'rows.csv');
  writeFileSync(path, content);
  const source = await openCsv({ path, maxRowBytes: 100, delimiter, ...selection });
  t.after(() => source.close());
  return source;
}

suite('JSON lines', () => {
  test('are rows with the numbers of their lines, spelled as they are; blank lines are none', async (t) => {
    const source = await jsonl(t, '\ufeff{"a": 1.50, "10": 1, "9": 2}\n\n  \r\n"text"\r\nnull\n[1]');
    assert.deepEqual((await rowsOf(source)).map(told), [
      [1, '{"a": 1.50, "10": 1, "9": 2}', ['{"a": 1.50, "10": 1, "9": 2}']],
      [4, '"text"', ['"text"']],
      [5, 'null', ['null']],
      [6, '[1]', ['[1]']],
    ]);
    await assertResumable(source);
  });

  test('that are not JSON, not UTF-8 or too long are bad, and the next is read', async (t) => {
    const broken = Buffer.concat([Buffer.from('1,"questions":{}\n"'), Buffer.of(0xff), Buffer.from('"\n')]);
    const source = await jsonl(t, Buffer.concat([broken, Buffer.from(`"${'x'.repeat(3_000_000)}"\n2`)]));
    assert.deepEqual((await rowsOf(source)).map(told), [
      [1, 'not valid JSON', '"1,\\"questions\\":{}"'],
      [2, 'not UTF-8', 'null'],
      [3, 'row larger than 100 bytes (max_body_bytes)', 'null'],
      [4, '2', ['2']],
    ]);
    await assertResumable(source);
  });

  test('give one field or several as the state, and keep what is asked for', async (t) => {
    const lines = '{"id": 1.0, "a": "x", "b": {"c": 1}}\n{"id": 2}\n"text"\n';
    const one = await jsonl(t, lines, { state: ['a'], keep: ['id', 'b'] });
    assert.deepEqual((await rowsOf(one)).map(told), [
      [1, '"x"', ['{"id":1.0,"b":{"c": 1}}']],
      [2, 'no field "a"', '{"id": 2}'],
      [3, 'no field "a"', '"text"'],
    ]);
    const several = await jsonl(t, lines, { state: ['b', 'a'], keep: [] });
    assert.deepEqual(told((await rowsOf(several))[0] as Row), [1, '{"b":{"c": 1},"a":"x"}', []]);
    assert.deepEqual(several.columns, []);
  });

  test('across the ends of the pieces in which a file is read', async (t) => {
    const line = JSON.stringify('é'.repeat(40));
    const source = await jsonl(t, `${line}\n`.repeat(40_000));
    const rows = await rowsOf(source);
    assert.equal(rows.length, 40_000);
    assert.ok(rows.every((row) => row.problem === undefined && row.stateJson === line));
    assert.deepEqual(rows.at(-1)?.end, { row: 40_000, offset: 40_000 * (Buffer.byteLength(line) + 1) });
  });
});

suite('CSV', () => {
  test('is rows of texts with the names of the first row, in their order', async (t) => {
    const source = await csv(t, '\ufeff10,"a ""b""",9\r\n1,"x\r\ny",\r\n\r\n2,say "hi",é\r\n3,last,z');
    assert.deepEqual((await rowsOf(source)).map(told), [
      [1, '{"10":"1","a \\"b\\"":"x\\r\\ny","9":""}', ['1', 'x\r\ny', '']],
      [2, '{"10":"2","a \\"b\\"":"say \\"hi\\"","9":"é"}', ['2', 'say "hi"', 'é']],
      [3, '{"10":"3","a \\"b\\"":"last","9":"z"}', ['3', 'last', 'z']],
    ]);
    await assertResumable(source);
  });

  test('has bad rows where cells are missing or too many, or bytes are not UTF-8', async (t) => {
    const content = [Buffer.from('a,b\n1\n1,2,3\n1,\ufffd\nx,'), Buffer.of(0xe9), Buffer.from('\n1,2\n')];
    const source = await csv(t, Buffer.concat(content));
    assert.deepEqual((await rowsOf(source)).map(told), [
      [1, '1 cells, the first row has 2', '{"a":"1"}'],
      [2, '3 cells, the first row has 2', '{"a":"1","b":"2","3":"3"}'],
      [3, '{"a":"1","b":"\ufffd"}', ['1', '\ufffd']],
      [4, 'not UTF-8', '{"a":"x","b":"\ufffd"}'],
      [5, '{"a":"1","b":"2"}', ['1', '2']],
    ]);
    await assertResumable(source);
  });

  test('gives one column as the state, or several, with another delimiter', async (t) => {
    const one = await csv(t, 'id;text\n1;"a;b"\n', { state: ['text'], keep: ['id'] }, ';');
    assert.deepEqual((await rowsOf(one)).map(told), [[1, '"a;b"', ['1']]]);
    const several = await csv(t, 'id,text\n1,a\n', { state: ['text', 'id'], keep: [] });
    assert.deepEqual((await rowsOf(several)).map(told), [[1, '{"text":"a","id":"1"}', []]]);
  });

  for (const [content, selection, message] of [
    ['', ALL, 'the first row must name the columns, and there is none'],
    ['a,a\n', ALL, 'column "a" twice'],
    ['a,b\n', { state: ['c'], keep: undefined }, 'no column "c"; there are a, b'],
    ['a,b\n', { state: [], keep: ['d'] }, 'no column "d"; there are a, b'],
  ] as const) {
    test(`refuses ${JSON.stringify(content)} with ${JSON.stringify(selection)}`, async (t) => {
      await assert.rejects(csv(t, content, selection), (error: Refusal) => error.message.endsWith(`.csv: ${message}`));
    });
  }

  for (const [content, message] of [
    ['a,b\n1,2\n"3,4\n5,6\n', 'row 2: its opening quote is never closed'],
    [`a,b\n1,2\n"${'x\n'.repeat(100)}`, 'row 2: larger than 100 bytes (max_body_bytes); is a quote not closed?'],
  ] as const) {
    test(`gives the rows before one that does not end, then says so: ${message}`, async (t) => {
      const source = await csv(t, content);
      const rows: Row[] = [];
      const read = async () => {
        for await (const row of source.rows(START)) rows.push(row);
      };
      await assert.rejects(read(), (error: Error) => error instanceof Refusal && error.message.endsWith(message));
      assert.deepEqual(rows.map(told), [[1, '{"a":"1","b":"2"}', ['1', '2']]]);
    });
  }
});

suite('Parquet', () => {
  async function parquet(t: TestContext, selection: Selection, columnIndex = true) {
    const filename = join(temporaryFolder(t), 'rows.parquet');
    const numbers = Array.from({ length: 7000 }, (_, at) => at);
    parquetWriteFile({
      filename,
      rowGroupSize: 3000,
      pageSize: 2000,
      columnData: [
        { name: 'big', data: numbers.map((n) => 2n ** 60n + BigInt(n)), type: 'INT64', offsetIndex: columnIndex },
        {
          name: 'text',
          data: numbers.map((n) => (n % 3 === 0 ? null : n % 3 === 1 ? '' : `text ${n}`)),
          type: 'STRING',
        },
        { name: 'when', data: numbers.map((n) => new Date(n * 1000)), type: 'TIMESTAMP' },
        { name: 'any', data: numbers.map((n) => ({ n, list: [true, null] })), type: 'JSON' },
        { name: 'half', data: numbers.map((n) => n / 2), type: 'DOUBLE' },
        { name: 'yes', data: numbers.map((n) => n % 2 === 0), type: 'BOOLEAN' },
      ],
    });
    const source = await openParquet({ path: filename, maxRowBytes: 1000, ...selection });
    t.after(() => source.close());
    return source;
  }

  test('is rows of values, big integers in full, across pages and groups', async (t) => {
    for (const hasIndex of [true, false]) {
      const source = await parquet(t, ALL, hasIndex);
      const rows = await rowsOf(source);
      assert.equal(rows.length, 7000);
      for (const [at, row] of rows.entries()) {
        assert.equal(row.number, at + 1);
        assert.ok(row.problem === undefined && row.stateJson.startsWith(`{"big":${2n ** 60n + BigInt(at)},"text":`));
      }
      assert.deepEqual(told(rows[1] as Row), [
        2,
        '{"big":1152921504606846977,"text":"","when":"1970-01-01T00:00:01.000Z","any":{"n":1,"list":[true,null]},"half":0.5,"yes":false}',
        ['1152921504606846977', '=', '1970-01-01T00:00:01.000Z', '{"n":1,"list":[true,null]}', '0.5', 'false'],
      ]);
      for (const row of [1, 2999, 3000, 5000, 6999, 7000]) {
        const rest = await rowsOf(source, { row, offset: 0 });
        assert.deepEqual(rest.map(told), rows.slice(row).map(told));
      }
    }
  });

  test('gives one column as the state, and keeps those that are asked for', async (t) => {
    const source = await parquet(t, { state: ['text'], keep: ['yes', 'text'] });
    const rows = await rowsOf(source);
    assert.deepEqual(rows.slice(0, 3).map(told), [
      [1, 'null', ['', 'true']],
      [2, '""', ['=', 'false']],
      [3, '"text 2"', ['=text 2', 'true']],
    ]);
    assert.deepEqual(source.columns, [
      { name: 'text', type: 'text' },
      { name: 'yes', type: 'boolean' },
    ]);
  });

  test('that is none, or has not the column, is refused', async (t) => {
    const path = join(temporaryFolder(t), 'rows.parquet');
    writeFileSync(path, 'no parquet at all');
    await assert.rejects(openParquet({ path, maxRowBytes: 1000, ...ALL }), /rows\.parquet: not a Parquet file: /);
    const missing = parquet(t, { state: ['title'], keep: undefined });
    await assert.rejects(missing, /no column "title"; there are big, text, when, any, half, yes$/);
  });
});
