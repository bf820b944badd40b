import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { suite, type TestContext, test } from 'node:test';
import { streamInput } from '../../src/file-run/byte-input.ts';
import { fileRunPlan } from '../../src/file-run/plan.ts';
import { openCsv } from '../../src/file-run/read-csv.ts';
import { openJsonl } from '../../src/file-run/read-jsonl.ts';
import { type Row, type Source, START } from '../../src/file-run/row.ts';
import { WrongUsage } from '../../src/refusal.ts';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { outputFiles, QUESTIONS, writeRows } from './run-files.ts';

const MODEL = fixture('shared-state-int8');
const HERE = ['--model', MODEL, '--device', 'cpu'];
const ALL = { state: [], keep: undefined };

async function told(source: Source): Promise<readonly unknown[]> {
  const rows: Row[] = [];
  for await (const row of source.rows(START)) rows.push(row);
  return rows.map((row) => (row.problem ? [row.number, row.problem.message] : [row.number, row.stateJson, row.cells]));
}

/** Returns a stream of the bytes in pieces of `size`. */
function pieces(content: Buffer, size: number): Readable {
  const count = Math.ceil(content.length / size);
  return Readable.from(Array.from({ length: count }, (_, at) => content.subarray(at * size, (at + 1) * size)));
}

suite('the rows of a stream are those of a file', () => {
  const csv = Buffer.concat([
    Buffer.from('\ufeffid,text\n1,"two\nlines"\n\n2,\ufffd é 日\n3\n4,'),
    Buffer.from([0xff]),
    Buffer.from('\n5,end'),
  ]);
  const jsonl = Buffer.from('\ufeff{"a": 1.50}\n\n{"torn\n"é 日"\r\n7');

  for (const size of [1, 3, 7, 1000]) {
    test(`in pieces of ${size} bytes`, async (t) => {
      const folder = temporaryFolder(t);
      const [table, lines] = [join(folder, 'rows.csv'), join(folder, 'rows.jsonl')];
      writeFileSync(table, csv);
      writeFileSync(lines, jsonl);
      const options = { delimiter: ',', maxRowBytes: 100, ...ALL };
      const fromFiles = [await openCsv({ path: table, ...options }), await openJsonl({ path: lines, ...options })];
      const streams = [csv, jsonl].map((content) => streamInput(pieces(content, size), 100));
      const fromStreams = [
        await openCsv({ path: 'stdin', input: streams[0], ...options }),
        await openJsonl({ path: 'stdin', input: streams[1], ...options }),
      ];
      for (const [at, source] of fromFiles.entries()) {
        const expected = await told(source);
        assert.ok(expected.length >= 4);
        assert.deepEqual(await told(fromStreams[at] as Source), expected);
        await source.close();
      }
    });
  }

  test('and no more of a stream is held than the limit says', async () => {
    const input = streamInput(pieces(Buffer.alloc(1000, 'x'), 10), 50);
    for await (const chunk of input.chunks(0, 1)) assert.equal(chunk.length, 10);
    assert.equal((await input.part(0, 1000)).length, 50);
    assert.equal((await input.part(980, 990)).length, 10);
  });
});

suite('the plan of a batch over streams', () => {
  for (const [input, options, message] of [
    ['-', { format: 'parquet' }, 'Parquet needs files: its index stands at its end'],
    ['a.parquet', { output: '-' }, 'Parquet needs files: its index stands at its end'],
    ['-', { resume: true }, '--resume needs files: a stream cannot be read again'],
    ['-', { output: 'a' }, 'rows from stdin are answered on stdout: leave out --output, and redirect stdout to a file'],
  ] as const) {
    test(`refuses ${input} with ${JSON.stringify(options)}`, () => {
      assert.throws(() => fileRunPlan(input, { questions: 'q', ...options }), new WrongUsage(message));
    });
  }
});

suite('svc batch -', { concurrency: 2 }, () => {
  function folder(t: TestContext): string {
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 'q.json'), QUESTIONS);
    return cwd;
  }

  for (const name of ['rows.jsonl', 'rows.csv']) {
    test(`writes to stdout what it writes to a file, and bad rows to stderr: ${name}`, async (t) => {
      const cwd = folder(t);
      writeRows(join(cwd, name), 300);
      const asked = ['--questions', 'q.json', '--state', 'text', ...HERE];
      assert.equal((await runSvc(t, ['batch', name, ...asked], { cwd })).code, 0);
      const files = outputFiles(cwd);
      const [output = '', errors = ''] = [name.replace('rows', 'rows.answers'), 'errors.jsonl'].map(
        (end) => Object.entries(files).find(([file]) => file.endsWith(end))?.[1],
      );
      const format = name.endsWith('.csv') ? ['--format', 'csv'] : [];
      const input = readFileSync(join(cwd, name), 'utf8');
      for (const [args, given] of [
        [['-', ...format], input],
        [[name, '--output', '-'], undefined],
      ] as const) {
        const options = given === undefined ? { cwd } : { cwd, input: given };
        const { code, stdout, stderr } = await runSvc(t, ['batch', ...args, ...asked], options);
        assert.equal(code, 0, stderr);
        assert.equal(Buffer.from(stdout).toString('latin1'), output);
        const lines = stderr.trimEnd().split('\n');
        assert.match(lines.pop() ?? '', /^297 rows answered, 3 bad, in \d+ s$/);
        assert.equal(Buffer.from(`${lines.join('\n')}\n`).toString('latin1'), errors);
      }
      assert.deepEqual(outputFiles(cwd), files);
      assert.deepEqual(
        readdirSync(cwd).filter((file) => file.startsWith('-')),
        [],
      );
    });
  }

  test('says how stdin was read when no row of it could be, unless that was asked for', async (t) => {
    const args = ['batch', '-', '--questions', 'q.json', ...HERE];
    const hint = 'stdin was read as JSON lines; --format csv reads CSV';
    for (const [format, input, isTold] of [
      [[], 'text\nhello\n', true],
      [['--format', 'jsonl'], 'text\nhello\n', false],
      [[], '"hello"\ntext\n', false],
      [[], '', false],
    ] as const) {
      const { stderr } = await runSvc(t, [...args, ...format], { cwd: folder(t), input });
      assert.equal(stderr.trimEnd().split('\n').at(-1) === hint, isTold, stderr);
    }
  });

  test('writes bad rows to the file of --errors, which it does not replace unasked', async (t) => {
    const cwd = folder(t);
    const args = ['batch', '-', '--questions', 'q.json', '--errors', 'bad.jsonl', ...HERE];
    const first = await runSvc(t, args, { cwd, input: '"a"\nno json\n' });
    assert.match(first.stderr, /^1 rows answered, 1 bad, in \d+ s\n$/);
    const line = '{"row":2,"error":{"code":"bad_row","message":"not valid JSON"},"input":"no json"}\n';
    assert.equal(readFileSync(join(cwd, 'bad.jsonl'), 'utf8'), line);
    const again = await runSvc(t, args, { cwd, input: '"a"\n' });
    assert.deepEqual([again.code, again.stderr], [1, 'bad.jsonl: is there already; --overwrite replaces it\n']);
    assert.equal((await runSvc(t, [...args, '--overwrite'], { cwd, input: '"a"\n' })).code, 0);
    assert.equal(readFileSync(join(cwd, 'bad.jsonl'), 'utf8'), '');
  });

  test('refuses a file of questions that is a whole request, and says which part it wants', async (t) => {
    const cwd = folder(t);
    writeFileSync(join(cwd, 'q.json'), `{"state":"x","questions":${QUESTIONS}}`);
    const { code, stderr } = await runSvc(t, ['batch', '-', '--questions', 'q.json', ...HERE], { cwd, input: '1' });
    const line = 'q.json: is a whole request; the file must hold only what "questions" holds\n';
    assert.deepEqual([code, stderr], [1, line]);
  });

  test('answers a row before the next one comes, and ends at a signal', async (t) => {
    const cwd = folder(t);
    const args = [join(REPOSITORY, 'bin', 'svc.js'), 'batch', '-', '--questions', 'q.json', ...HERE];
    const child = spawn(process.execPath, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text;
    });
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    for (const n of [1, 2, 3]) {
      child.stdin.write(`"row ${n}"\n`);
      const { value } = await answers.next();
      assert.deepEqual([JSON.parse(value).row, JSON.parse(value).input], [n, `row ${n}`]);
    }
    child.kill('SIGTERM');
    const [code] = await once(child, 'close');
    // Windows ends a process at once for any signal.
    if (process.platform === 'win32') return;
    assert.deepEqual([code, stderr], [143, 'stopped after 3 rows\n']);
    assert.ok(!existsSync(join(cwd, '-')));
  });
});
