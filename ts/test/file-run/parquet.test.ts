/** Parquet files that are large, damaged or made to harm. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { parquetWriteFile } from 'hyparquet-writer';
import { damageReason } from '../../src/file-run/parquet/damage.ts';
import { decompress } from '../../src/file-run/parquet/decompress.ts';
import { checkLevels, checkLevelsV2, checkValues } from '../../src/file-run/parquet/page-check.ts';
import { structEnd } from '../../src/file-run/parquet/thrift.ts';
import { openJsonl } from '../../src/file-run/read-jsonl.ts';
import { openParquet } from '../../src/file-run/read-parquet.ts';
import { type Row, type Source, START } from '../../src/file-run/row.ts';
import { Refusal } from '../../src/refusal.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const ALL = { state: [], keep: [] };
const COMPRESSORS = { GZIP: (bytes: Uint8Array) => new Uint8Array(zlib.gzipSync(bytes)) };
const MIB = 1024 * 1024;

async function rowsOf(source: Source): Promise<Row[]> {
  const rows: Row[] = [];
  try {
    for await (const row of source.rows(START)) rows.push(row);
  } finally {
    await source.close();
  }
  return rows;
}

type Columns = Parameters<typeof parquetWriteFile>[0]['columnData'];

function written(t: TestContext, columnData: Columns, options = {}): string {
  const filename = join(temporaryFolder(t), 'rows.parquet');
  parquetWriteFile({ filename, columnData, codec: 'GZIP', compressors: COMPRESSORS, ...options });
  return filename;
}

test('a row that is larger than max_body_bytes is bad in Parquet as in JSON lines, and the next is read', async (t) => {
  const texts = ['a', 'x'.repeat(200), 'é'.repeat(60), '\u0001'.repeat(30), 'b'];
  const path = written(t, [{ name: 'text', data: texts, type: 'STRING' }]);
  const lines = join(temporaryFolder(t), 'rows.jsonl');
  writeFileSync(lines, texts.map((text) => `${JSON.stringify({ text })}\n`).join(''));
  const told = async (source: Source) =>
    (await rowsOf(source)).map((row) => [row.number, row.problem ?? row.stateJson, row.inputJson()]);
  const inParquet = await told(await openParquet({ path, maxRowBytes: 120, ...ALL }));
  assert.deepEqual(inParquet, await told(await openJsonl({ path: lines, maxRowBytes: 120, ...ALL })));
  const message = 'row larger than 120 bytes (max_body_bytes)';
  assert.deepEqual(inParquet[1], [2, { code: 'bad_row', message }, 'null']);
  assert.deepEqual(
    inParquet.map(([, state]) => typeof state === 'string'),
    [true, false, false, false, true],
  );
});

test('the input of a row is an object of its state, be that one column or several', async (t) => {
  const path = written(t, [
    { name: 'text', data: ['a'], type: 'STRING' },
    { name: 'n', data: Int32Array.from([7]), type: 'INT32' },
  ]);
  for (const [state, stateJson, input] of [
    [['text'], '"a"', '{"text":"a"}'],
    [['n', 'text'], '{"n":7,"text":"a"}', '{"n":7,"text":"a"}'],
  ] as const) {
    const [row] = await rowsOf(await openParquet({ path, maxRowBytes: MIB, state: [...state], keep: [] }));
    assert.deepEqual([row?.problem ?? row?.stateJson, row?.inputJson()], [stateJson, input]);
  }
});

test('a footer may have 8 MiB, and not one byte more', async (t) => {
  const path = join(temporaryFolder(t), 'rows.parquet');
  for (const [bytes, message] of [
    [8 * MIB, /nested too deep/],
    [8 * MIB + 1, /its footer has 8388609 bytes, the limit is 8388608$/],
  ] as const) {
    const end = Buffer.from('....PAR1');
    end.writeUInt32LE(bytes, 0);
    writeFileSync(path, Buffer.concat([Buffer.alloc(bytes, 0x1c), end]));
    await assert.rejects(openParquet({ path, maxRowBytes: MIB, ...ALL }), message);
  }
});

suite('the memory for a Parquet file does not follow what it unfolds to', () => {
  const long = 'a'.repeat(16 * MIB);
  const files: readonly (readonly [string, number, () => string[]])[] = [
    ['rows of 16 MiB in 786 KB', 48, () => Array.from({ length: 48 }, (_, at) => `${at}${long}`)],
    ['one value of 16 MiB in 1,900 rows', 1900, () => Array.from({ length: 1900 }, () => long)],
  ];
  for (const [what, count, data] of files) {
    test(what, async (t) => {
      const path = written(t, [{ name: 'text', data: data(), type: 'STRING' }]);
      const reader = new URL('../../src/file-run/read-parquet.js', import.meta.url);
      const program = `
        const { openParquet } = await import(${JSON.stringify(reader.href)});
        const source = await openParquet({ path: process.argv[1], state: [], keep: undefined, maxRowBytes: ${8 * MIB} });
        // The program holds as many rows as wait for their answers in a run.
        const held = [];
        let [bad, peakBytes] = [0, 0];
        for await (const row of source.rows({ row: 0, offset: 0 })) {
          held.push(row);
          if (held.length > 64) held.shift();
          bad += row.problem ? 1 : 0;
          peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
        }
        console.log(bad, peakBytes);`;
      const args = ['--input-type=module', '--eval', program, path];
      const { stdout } = await promisify(execFile)(process.execPath, args, {
        cwd: fileURLToPath(new URL('.', reader)),
      });
      const [bad, peakBytes = Number.NaN] = stdout.split(' ').map(Number);
      assert.equal(bad, count);
      assert.ok(peakBytes < 300 * MIB, `${peakBytes} bytes`);
    });
  }
});

suite('a Parquet file that is damaged', () => {
  const numbers = Array.from({ length: 500 }, (_, at) => at);
  const texts = numbers.map((n) => (n % 7 === 0 ? null : `the ${n % 40} thing ${n}`));
  const flat: Columns = [
    { name: 'text', data: texts, type: 'STRING' },
    { name: 'few', data: numbers.map((n) => `kind ${n % 3}`), type: 'STRING' },
    { name: 'n', data: Int32Array.from(numbers), type: 'INT32' },
    { name: 'when', data: numbers.map((n) => new Date(n * 1000)), type: 'TIMESTAMP' },
    { name: 'any', data: numbers.map((n) => ({ n, list: [n, null] })), type: 'JSON' },
  ];
  const encoded: Columns = [
    { name: 'shared', data: numbers.map((n) => `prefix ${n}`), type: 'STRING', encoding: 'DELTA_BYTE_ARRAY' },
    { name: 'lengths', data: numbers.map(String), type: 'STRING', encoding: 'DELTA_LENGTH_BYTE_ARRAY' },
    { name: 'delta', data: Int32Array.from(numbers), type: 'INT32', encoding: 'DELTA_BINARY_PACKED' },
    { name: 'split', data: Float64Array.from(numbers), type: 'DOUBLE', encoding: 'BYTE_STREAM_SPLIT' },
  ];
  const kinds: readonly (readonly [string, Columns, object])[] = [
    ['gzip', flat, { rowGroupSize: 200, pageSize: 1000 }],
    ['Snappy', flat, { codec: 'SNAPPY', rowGroupSize: 200, pageSize: 1000 }],
    ['no compression', [...flat, ...encoded], { codec: 'UNCOMPRESSED' }],
  ];

  for (const [name, columns, options] of kinds) {
    test(`gives rows or one line that says where, 150 times of ${name}`, async (t) => {
      const path = written(t, columns, options);
      const whole = readFileSync(path);
      const undamaged = (await rowsOf(await openParquet({ path, maxRowBytes: 1000, ...ALL }))).map(textOf);
      const random = seeded(name.length);
      let [refused, same, changed] = [0, 0, 0];
      for (let round = 0; round < 150; round += 1) {
        const bytes = damaged(whole, random);
        writeFileSync(path, bytes);
        const read = openParquet({ path, maxRowBytes: 1000, ...ALL }).then(rowsOf);
        const [texts, error] = await read.then(
          (rows) => [rows.map(textOf), undefined] as const,
          (thrown: unknown) => [undefined, thrown] as const,
        );
        if (texts !== undefined) {
          assert.equal(texts.length, undamaged.length, `round ${round}`);
          const kept = texts.filter((text, at) => text === undamaged[at]).length;
          same += kept;
          changed += texts.length - kept;
          continue;
        }
        refused += 1;
        assert.ok(error instanceof Refusal, `round ${round}: ${error instanceof Error ? error.stack : error}`);
        const where = /^.*rows\.parquet: (not a Parquet file|row \d+ cannot be read): .+$/;
        assert.match(error.message, where);
        assert.doesNotMatch(error.message, /undefined|is not a|Cannot|Invalid|Offset|DataView|BigInt|stack/);
      }
      assert.ok(refused > 20 && refused < 150, `${refused}`);
      // A few bytes of the file are in few of the rows.
      assert.ok(changed < same / 10, `${changed} changed, ${same} as they were`);
    });
  }

  test('that says it has fewer rows, or more, than its columns is refused', async (t) => {
    const columns = [{ name: 'n', data: Int32Array.from(numbers), type: 'INT32' as const }];
    const path = written(t, columns, { codec: 'UNCOMPRESSED' });
    const bytes = readFileSync(path);
    // The footer holds the number 500 three times, as Thrift writes it: for the file, for the column's chunk and for
    // the row group.
    const at = bytes.lastIndexOf(Buffer.of(0xe8, 0x07));
    for (const low of [0xe6, 0xea]) {
      bytes[at] = low;
      writeFileSync(path, bytes);
      const read = openParquet({ path, maxRowBytes: 1000, ...ALL }).then(rowsOf);
      await assert.rejects(read, /row 1 cannot be read: it has not the rows of its group$/);
    }
  });
});

/**
 * Returns a row's number and contents as text. Fails unless the contents are JSON, and an object where the row is a
 * good one.
 */
function textOf(row: Row): string {
  const input = JSON.stringify(JSON.parse(row.inputJson()));
  if (row.problem !== undefined) {
    assert.equal(row.problem.code, 'bad_row');
    return `${row.number}: ${row.problem.message} ${input}`;
  }
  assert.equal(typeof JSON.parse(row.stateJson), 'object', row.stateJson);
  return `${row.number}: ${row.stateJson} ${input}`;
}

/** Returns a function that gives random numbers from 0 to 1, the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Returns a copy with a few changed bytes, about half of them in the footer; some copies are also cut short. */
function damaged(whole: Buffer, random: () => number): Buffer {
  const bytes = Buffer.from(whole);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let left = 1 + below(4); left > 0; left -= 1) {
    const at = random() < 0.5 ? bytes.length - 1 - below(Math.min(bytes.length, 1500)) : below(bytes.length);
    bytes[at] = [0, 127, 255, (bytes[at] ?? 0) ^ (1 << below(8)), below(256)][below(5)] ?? 0;
  }
  return random() < 0.05 ? bytes.subarray(0, below(bytes.length)) : bytes;
}

suite('what a Parquet page says of itself is not believed', () => {
  const numbers = { type: 'INT32', typeLength: 0 } as const;
  const texts = { type: 'BYTE_ARRAY', typeLength: 0 } as const;

  for (const [what, bytes, check, message] of [
    [
      'a run of 2^30 values',
      [1, 0xfe, 0xff, 0xff, 0xff, 7, 0],
      { ...numbers, encoding: 'RLE_DICTIONARY', count: 8 },
      /more values/,
    ],
    [
      'packed values without width for ever',
      [0, 0xff, 0xff, 0xff, 0xff, 7],
      { ...numbers, encoding: 'RLE_DICTIONARY', count: 8 },
      /more values/,
    ],
    ['a text of 4 GiB', [0xff, 0xff, 0xff, 0xff, 65], { ...texts, encoding: 'PLAIN', count: 1 }, /cut short/],
    ['a million numbers in 4 bytes', [0, 0, 0, 0], { ...numbers, encoding: 'PLAIN', count: 1e6 }, /cut short/],
    ['blocks without parts', [128, 1, 0, 8, 0], { ...numbers, encoding: 'DELTA_BINARY_PACKED', count: 8 }, /blocks/],
    ['an encoding that is none', [0], { ...numbers, encoding: undefined, count: 1 }, /of no name/],
  ] as const) {
    test(what, () => assert.throws(() => checkValues(Uint8Array.from(bytes), check), message));
  }

  test('texts cost the memory of an object each, and numbers and places in a dictionary that of a value', () => {
    const plain = new Uint8Array(40);
    assert.equal(checkValues(plain, { ...numbers, encoding: 'PLAIN', count: 10 }), 10 * 24);
    assert.equal(checkValues(plain, { ...texts, encoding: 'PLAIN', count: 10 }), 10 * 200);
    const places = Uint8Array.from([1, 10 << 1, 0]);
    assert.equal(checkValues(places, { ...texts, encoding: 'RLE_DICTIONARY', count: 10 }), 10 * 24);
  });

  test('the reason why a file cannot be read is one line', () => {
    assert.equal(damageReason(new Error('parquet file invalid\n\n  (footer)')), 'file invalid (footer)');
    assert.equal(damageReason(new TypeError('x is\nundefined')), 'its bytes make no sense');
  });

  test('texts that share a long beginning cost what they are in memory', () => {
    // Each list: blocks of 128 in 4 parts, 2 values, the first value, then the difference of the second. The values are
    // 0 and 32 in one list, 32 and 0 in the other.
    const zigzag = (value: number) => (value < 0 ? -2 * value - 1 : 2 * value);
    const delta = (first: number, then: number) => [128, 1, 4, 2, zigzag(first), zigzag(then), 0, 0, 0, 0];
    const bytes = Uint8Array.from([...delta(0, 32), ...delta(32, -32), ...new Array(32).fill(65)]);
    const cost = checkValues(bytes, { ...texts, encoding: 'DELTA_BYTE_ARRAY', count: 2 });
    assert.equal(cost, 2 * 200 + 64);
    const cheat = Uint8Array.from([...delta(0, 33), ...delta(32, -32), ...new Array(32).fill(65)]);
    const longer = () => checkValues(cheat, { ...texts, encoding: 'DELTA_BYTE_ARRAY', count: 2 });
    assert.throws(longer, /of a length that cannot be/);
  });

  test('levels above the highest', () => {
    const bytes = Uint8Array.from([2, 0, 0, 0, 2 << 1, 3]);
    assert.throws(() => checkLevels(bytes, 2, { maxRepetition: 0, maxDefinition: 1 }), /levels that cannot be/);
  });

  test('counts of rows or nulls that its levels do not have', () => {
    // The definition levels: one value that is there, and one that is missing.
    const bytes = Uint8Array.from([1 << 1, 1, 1 << 1, 0]);
    const check = (num_nulls: number, num_rows: number) => {
      const lengths = { definition_levels_byte_length: 4, repetition_levels_byte_length: 0 };
      const header = { num_values: 2, num_nulls, num_rows, encoding: 'PLAIN' as const, ...lengths };
      return checkLevelsV2(bytes, header, { maxRepetition: 0, maxDefinition: 1 });
    };
    assert.deepEqual(check(1, 2), { end: 4, present: 1 });
    for (const [nulls, rows] of [
      [0, 2],
      [2, 2],
      [1, 3],
    ] as const) {
      assert.throws(() => check(nulls, rows), /^Error: a page has counts that cannot be$/);
    }
    assert.throws(() => check(1, -1));
  });

  for (const [codec, pack] of [
    ['GZIP', zlib.gzipSync],
    ['BROTLI', zlib.brotliCompressSync],
  ] as const) {
    test(`a length that is too short or too long for ${codec}`, () => {
      const packed = pack(Buffer.alloc(100_000, 65));
      assert.equal(decompress(codec, packed, 100_000).length, 100_000);
      assert.throws(() => decompress(codec, packed, 99_999), /^Error: a page cannot be decompressed$/);
      assert.throws(
        () => decompress(codec, packed, 100_001),
        /^Error: a page has 100000 bytes, its header says 100001$/,
      );
    });
  }

  test('lengths of Snappy that would lead back', () => {
    const back = Uint8Array.of(4, 0xfc, 0xfa, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0);
    assert.throws(() => decompress('SNAPPY', back, 4), /cannot be decompressed/);
    assert.deepEqual([...decompress('SNAPPY', Uint8Array.of(4, 3 << 2, 65, 66, 67, 68), 4)], [65, 66, 67, 68]);
  });

  for (const [what, bytes, message] of [
    ['a list of 30 million in 8 bytes', [0x19, 0xfc, 0x80, 0xbf, 0x9c, 0x0e, 0, 0], /cut short/],
    ['a number that does not end', [0x16, ...new Array(100_000).fill(0xff)], /does not end/],
    ['structures in structures', new Array(100_000).fill(0x1c), /too deep/],
    ['a text that is longer than the file', [0x18, 0xff, 0x7f, 65], /cut short/],
    ['no end', [0x15, 2], /cut short/],
  ] as const) {
    test(`in its header: ${what}`, () => assert.throws(() => structEnd(Uint8Array.from(bytes), 0), message));
  }
});
