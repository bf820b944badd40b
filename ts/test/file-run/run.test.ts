import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Decider, DecisionText, Outcome } from '../../src/file-run/decider.ts';
import { inOrder } from '../../src/file-run/in-order.ts';
import type { Journal } from '../../src/file-run/journal.ts';
import { type FileRunOptions, fileRunPlan } from '../../src/file-run/plan.ts';
import { beginning, openInput, runFile } from '../../src/file-run/run.ts';
import { Refusal } from '../../src/refusal.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { outputFiles, parquetRows, writeRows } from './run-files.ts';

/** One question; a JavaScript object would put its options into another order. */
const QUESTIONS = '{"q":{"type":"choice","criteria":{"10":"ten","9":"nine"}}}';

const MAX_ROW_BYTES = 10_000;

const TORN = `{"torn${' '.repeat(2 ** 20)}`;

/** A decider that answers every state by its length, some of them later, and refuses those with "card". */
class FakeDecider implements Decider {
  readonly window = 7;
  readonly model: string | null;
  asked = 0;
  /** Called with the number of each request. */
  onAsk: (n: number) => void = () => {};

  constructor(model: string | null = 'files aa') {
    this.model = model;
  }

  async decide({ stateJson }: DecisionText): Promise<Outcome> {
    this.asked += 1;
    this.onAsk(this.asked);
    if (this.asked % 3 === 0) await sleep(0);
    if (stateJson.includes('card')) return { problem: { code: 'text_too_long', message: 'too long' } };
    const p = (stateJson.length % 100) / 100;
    const answers = `{"q":{"type":"choice","choice":"10","probabilities":{"10":${1 - p},"9":${p}},"confidence":${p},"answer_confidence":1}}`;
    return {
      body: `{"model":"svc","answers":${answers},"usage":{"input_tokens":${stateJson.length},"server_ms":1.5}}`,
    };
  }

  async close(): Promise<void> {}
}

interface RowsFile {
  readonly folder: string;
  readonly name: string;
}

function makeRows(t: TestContext, name: string, rows: number): RowsFile {
  const folder = temporaryFolder(t);
  writeRows(join(folder, name), rows);
  writeFileSync(join(folder, 'q.json'), QUESTIONS);
  return { folder, name };
}

interface RunOptions extends FileRunOptions {
  readonly decider?: FakeDecider;
  readonly stop?: AbortSignal;
}

/** Does one run in the way of `svc batch`, and returns its journal. */
async function run(
  { folder, name }: RowsFile,
  { decider = new FakeDecider(), stop, ...options }: RunOptions = {},
): Promise<Journal> {
  const plan = fileRunPlan(join(folder, name), { questions: join(folder, 'q.json'), ...options });
  const source = await openInput(plan, MAX_ROW_BYTES);
  try {
    const begun = await beginning(plan, source);
    if (begun.done) return begun;
    const signal = stop ?? new AbortController().signal;
    return await runFile({ plan, source, decider, stop: signal, onRow: () => {} }, begun);
  } finally {
    await source.close();
  }
}

const refusal = (end: string) => (error: unknown) => error instanceof Refusal && error.message.endsWith(end);

suite('a run of a file', () => {
  test('of JSON lines has the input, the answers as they came, and what is bad beside it', async (t) => {
    const rowsFile = makeRows(t, 'rows.jsonl', 0);
    writeFileSync(join(rowsFile.folder, rowsFile.name), '{"id": 1.0}\nnot json\n{"id": "card"}\n7\n');
    const journal = await run(rowsFile);
    assert.deepEqual([journal.answered, journal.bad, journal.done], [2, 2, true]);
    const { 'rows.answers.jsonl': rows = '', 'rows.answers.jsonl.errors.jsonl': errors } = outputFiles(rowsFile.folder);
    assert.equal(
      rows.split('\n')[0],
      '{"row":1,"input":{"id": 1.0},"answers":{"q":{"type":"choice","choice":"10","probabilities":{"10":0.89,"9":0.11},"confidence":0.11,"answer_confidence":1}},"input_tokens":11}',
    );
    assert.match(rows.split('\n')[1] ?? '', /^\{"row":4,"input":7,/);
    assert.equal(
      errors,
      '{"row":2,"error":{"code":"bad_row","message":"not valid JSON"},"input":"not json"}\n' +
        '{"row":3,"error":{"code":"text_too_long","message":"too long"},"input":{"id": "card"}}\n',
    );
  });

  test('of CSV has a column for each part of the answers, in the order of the options', async (t) => {
    const rowsFile = makeRows(t, 'rows.csv', 0);
    writeFileSync(join(rowsFile.folder, rowsFile.name), 'a;b\n"x;y";1\n');
    await run(rowsFile, { delimiter: ';', state: ['a'], keep: 'a' });
    assert.deepEqual(outputFiles(rowsFile.folder), {
      'rows.answers.csv':
        'a;svc.row;q;q.confidence;q.answer_confidence;q.p.10;q.p.9;svc.input_tokens;svc.truncated_tokens\n' +
        '"x;y";1;10;0.05;1;0.95;0.05;5;0\n',
    });
  });

  test('of Parquet has numbered parts with all rows in order, values as they were', async (t) => {
    const rowsFile = makeRows(t, 'rows.parquet', 2500);
    const journal = await run(rowsFile, { partRows: '1000', state: ['text'] });
    const parts = readdirSync(rowsFile.folder)
      .filter((name) => /^rows\.answers-\d{5}\.parquet$/.test(name))
      .sort();
    assert.equal(parts.length, Math.ceil(journal.answered / 1000));
    const rows = (await Promise.all(parts.map((part) => parquetRows(join(rowsFile.folder, part))))).flat();
    const input = await parquetRows(join(rowsFile.folder, rowsFile.name));
    const good = input.filter(({ text }) => !String(text).includes('card'));
    assert.deepEqual(
      rows.map(({ id, text }) => ({ id, text })),
      good.map(({ id, text }) => ({ id, text })),
    );
    assert.deepEqual(
      rows.map((row) => row['svc.row']),
      good.map(({ id }) => id),
    );
    assert.equal(typeof rows[0]?.['q.p.9'], 'number');
    assert.equal(journal.bad, input.length - good.length);
    assert.ok(!existsSync(join(rowsFile.folder, 'rows.answers.parquet.rows')));
  });

  for (const name of ['rows.jsonl', 'rows.csv', 'rows.parquet']) {
    test(`of no rows at all is done, with the columns where there are some: ${name}`, async (t) => {
      const rowsFile = makeRows(t, name, 0);
      const journal = await run(rowsFile);
      assert.deepEqual([journal.answered, journal.bad, journal.done], [0, 0, true]);
      const files = Object.keys(outputFiles(rowsFile.folder));
      assert.deepEqual(files, [
        name === 'rows.parquet' ? 'rows.answers-00001.parquet' : name.replace('.', '.answers.'),
      ]);
    });

    test(`that ends at any row, and goes on, is the same as one that does not: ${name}`, async (t) => {
      const whole = makeRows(t, name, 400);
      await run(whole, { partRows: '90' });
      const broken = makeRows(t, name, 400);
      let runs = 0;
      for (let isDone = false; !isDone; runs++) {
        const [decider, stop] = [new FakeDecider(), new AbortController()];
        decider.onAsk = (n) => {
          if (n === 60) stop.abort(new Error('stopped'));
        };
        isDone =
          (await run(broken, { partRows: '90', resume: true, decider, stop: stop.signal }).then(
            ({ done }) => done,
            (error: Error) => assert.equal(error.message, 'stopped'),
          )) === true;
        // A kill leaves bytes behind the last commit. These here are longer than everything that is written over them.
        for (const file of isDone
          ? []
          : readdirSync(broken.folder).filter((file) => /\.answers.*(jsonl|csv|rows)$/.test(file))) {
          appendFileSync(join(broken.folder, file), TORN);
        }
      }
      assert.ok(runs > 5);
      assert.deepEqual(outputFiles(broken.folder), outputFiles(whole.folder));
    });
  }

  test('that ends while it makes a part makes it of the same rows when it goes on', async (t) => {
    // The row behind the part has an answer: a row without one would not get into the part.
    const options = { partRows: '90' };
    const [whole, broken] = [makeRows(t, 'rows.parquet', 300), makeRows(t, 'rows.parquet', 300)];
    await run(whole, options);
    const inTheWay = join(broken.folder, 'rows.answers-00002.parquet');
    const stopped = run(broken, options);
    mkdirSync(inTheWay);
    await assert.rejects(stopped, /: cannot be written \(E\w+\)$/);
    rmdirSync(inTheWay);
    await run(broken, { ...options, resume: true });
    assert.deepEqual(outputFiles(broken.folder), outputFiles(whole.folder));
  });

  test('that starts anew in fewer parts leaves no part of the run before', async (t) => {
    const [fresh, again] = [makeRows(t, 'rows.parquet', 100), makeRows(t, 'rows.parquet', 100)];
    await run(fresh, { partRows: '50' });
    await run(again, { partRows: '20' });
    await run(again, { partRows: '50', overwrite: true });
    assert.deepEqual(outputFiles(again.folder), outputFiles(fresh.folder));
  });

  test('that is complete stays as it is when it is resumed', async (t) => {
    const rowsFile = makeRows(t, 'rows.csv', 20);
    await run(rowsFile);
    const before = outputFiles(rowsFile.folder);
    const decider = new FakeDecider();
    assert.equal((await run(rowsFile, { resume: true, decider })).done, true);
    assert.deepEqual([decider.asked, outputFiles(rowsFile.folder)], [0, before]);
  });
});

suite('a run of a file refuses', () => {
  test('an output that is there, without --resume or --overwrite', async (t) => {
    const rowsFile = makeRows(t, 'rows.csv', 20);
    await run(rowsFile);
    const rows = join(rowsFile.folder, 'rows.answers.csv');
    await assert.rejects(
      run(rowsFile),
      refusal('begun already, 20 rows are done; --resume goes on, --overwrite starts anew'),
    );
    const { answered, bad } = await run(rowsFile, { overwrite: true });
    assert.equal(answered + bad, 20);
    rmSync(`${rows}.progress`);
    await assert.rejects(
      run(rowsFile, { resume: true }),
      refusal('rows.answers.csv: is there already; --overwrite replaces it'),
    );
  });

  test('to go on with other questions, another input, another model, or a journal that is none', async (t) => {
    const rowsFile = makeRows(t, 'rows.jsonl', 300);
    const [decider, stop] = [new FakeDecider(), new AbortController()];
    decider.onAsk = (n) => n === 200 && stop.abort(new Error('stopped'));
    await assert.rejects(run(rowsFile, { decider, stop: stop.signal }), /stopped/);
    const resume = true;
    await assert.rejects(
      run(rowsFile, { resume, keep: 'id' }),
      refusal('was begun with other questions or options; --overwrite starts anew'),
    );
    await assert.rejects(
      run(rowsFile, { resume, decider: new FakeDecider('files bb') }),
      refusal('was begun with another model; --overwrite starts anew'),
    );
    const input = join(rowsFile.folder, rowsFile.name);
    const content = readFileSync(input, 'utf8');
    writeFileSync(input, content.replace('"id":50,', '"id":51,'));
    await assert.rejects(
      run(rowsFile, { resume }),
      refusal('has changed since the run began; --overwrite starts anew'),
    );
    // The part of the input behind the rows that were read may change or grow.
    writeFileSync(input, `${content}{"id":301}\n`);
    assert.equal((await run(rowsFile, { resume, decider: new FakeDecider('graph cc') })).row, 301);
    writeFileSync(`${join(rowsFile.folder, 'rows.answers.jsonl')}.progress`, '{"row":');
    await assert.rejects(
      run(rowsFile, { resume }),
      refusal('does not say how far a run has come; --overwrite starts anew'),
    );
  });

  test('to go on with an output that somebody has cut', async (t) => {
    const rowsFile = makeRows(t, 'rows.jsonl', 300);
    const [decider, stop] = [new FakeDecider(), new AbortController()];
    decider.onAsk = (n) => n === 200 && stop.abort(new Error('stopped'));
    await assert.rejects(run(rowsFile, { decider, stop: stop.signal }), /stopped/);
    writeFileSync(join(rowsFile.folder, 'rows.answers.jsonl'), 'x');
    await assert.rejects(run(rowsFile, { resume: true }), refusal('were written; it cannot be gone on with'));
  });

  test('to write where another run has taken over', async (t) => {
    const rowsFile = makeRows(t, 'rows.jsonl', 300);
    const decider = new FakeDecider();
    const journal = `${join(rowsFile.folder, 'rows.answers.jsonl')}.progress`;
    decider.onAsk = (n) =>
      n === 200 && writeFileSync(journal, readFileSync(journal, 'utf8').replace(/"run": ".*?"/, '"run": "other"'));
    await assert.rejects(run(rowsFile, { decider }), refusal('another svc batch goes on with this output'));
    assert.equal(JSON.parse(readFileSync(journal, 'utf8')).run, 'other');
  });

  test('questions that the model refuses, before there is any output', async (t) => {
    const rowsFile = makeRows(t, 'rows.jsonl', 3);
    const decider = new FakeDecider();
    decider.decide = async () => ({ problem: { code: 'too_few_options', message: 'team: need at least two options' } });
    await assert.rejects(run(rowsFile, { decider }), refusal('q.json: team: need at least two options'));
    assert.deepEqual(outputFiles(rowsFile.folder), {});
    await run(rowsFile);
    const before = outputFiles(rowsFile.folder);
    await assert.rejects(run(rowsFile, { decider, overwrite: true }), refusal('need at least two options'));
    assert.deepEqual(outputFiles(rowsFile.folder), before);
  });

  test('a column that would be there twice', async (t) => {
    const rowsFile = makeRows(t, 'rows.csv', 0);
    writeFileSync(join(rowsFile.folder, rowsFile.name), 'q,b\n1,2\n');
    await assert.rejects(
      run(rowsFile),
      refusal('column "q" would be in the output twice; rename the question, or see --keep'),
    );
    assert.equal((await run(rowsFile, { keep: 'b' })).answered, 1);
  });

  test('an input that is not there', async (t) => {
    const rowsFile = makeRows(t, 'rows.csv', 0);
    rmSync(join(rowsFile.folder, rowsFile.name));
    await assert.rejects(run(rowsFile), refusal('rows.csv: cannot be read (ENOENT)'));
  });
});

suite('the questions of a run', () => {
  const question = '{"type":"noul"}';
  for (const [what, text, expected] of [
    ['are taken without a byte order mark and space around them', `\uFEFF \n{"a":${question}}\n`, `{"a":${question}}`],
    ['may be called state and questions', `{"state":${question},"questions":${question}}`, undefined],
    ['that the engine will refuse are no whole request', `{"state":${question},"questions":null}`, undefined],
  ] as const) {
    test(what, (t) => {
      const questions = join(temporaryFolder(t), 'q.json');
      writeFileSync(questions, text);
      assert.equal(fileRunPlan('a.csv', { questions }).questionsJson, expected ?? text);
    });
  }
});

suite('the plan of a run refuses', () => {
  for (const [input, options, message] of [
    ['a.csv', {}, 'what is asked? Give --questions FILE; see svc batch --help'],
    ['a.txt', { questions: 'q' }, 'a.txt: ends in none of .jsonl, .ndjson, .csv, .tsv, .parquet; give --format'],
    ['a.csv', { questions: 'q', format: 'xml' }, '--format: must be one of jsonl, csv, parquet'],
    ['a.csv', { questions: 'q', partRows: '0' }, '--part-rows: must be a whole number from 1 to 10000000'],
    ['a.csv', { questions: 'q', delimiter: '::' }, '--delimiter: must be one character'],
    [
      'a.csv',
      { questions: 'q', output: './a.csv' },
      `${resolve('a.csv')}: cannot be two of input, questions, output and errors`,
    ],
    [
      'a.csv',
      { questions: 'q', output: 'o', errors: 'o' },
      `${resolve('o')}: cannot be two of input, questions, output and errors`,
    ],
    [
      'o.progress',
      { questions: 'q', output: 'o', format: 'csv' },
      `${resolve('o.progress')}: cannot be two of input, questions, output and errors`,
    ],
    ['a.csv', { questions: 'q', resume: true, overwrite: true }, '--resume and --overwrite exclude each other'],
    ['a.csv', { questions: 'nowhere.json' }, 'nowhere.json: cannot be read (ENOENT)'],
  ] as const) {
    test(message, () => {
      assert.throws(() => fileRunPlan(input, options), new Refusal(message));
    });
  }

  for (const [text, message] of [
    ['{', 'is not valid JSON'],
    ['[]', 'must be an object of questions, as in "questions" of a request'],
    ['{},"state":1', 'is not valid JSON'],
  ] as const) {
    test(`questions that are ${text}`, (t) => {
      const questions = join(temporaryFolder(t), 'q.json');
      writeFileSync(questions, text);
      assert.throws(() => fileRunPlan('a.csv', { questions }), new Refusal(`${questions}: ${message}`));
    });
  }
});

suite('inOrder', () => {
  async function* numbers(count: number) {
    for (let n = 0; n < count; n++) yield n;
  }

  test('gives results in the order of the items, however long each takes, and holds no more than the limit', async () => {
    let [started, most] = [0, 0];
    const got: number[] = [];
    const work = async (n: number) => {
      started += 1;
      // A result that waits for an earlier one is held as well.
      most = Math.max(most, started - got.length);
      await sleep((n * 7) % 5);
      return n * 2;
    };
    for await (const [item, result] of inOrder(numbers(100), work, { items: 8 })) {
      assert.equal(result, item * 2);
      got.push(item);
    }
    assert.deepEqual(
      got,
      Array.from({ length: 100 }, (_, n) => n),
    );
    assert.ok(most > 1 && most <= 8);
  });

  test('gives a result although the next item does not come', async () => {
    let more = () => {};
    const later = new Promise<void>((resolve) => {
      more = resolve;
    });
    async function* slow() {
      yield 1;
      await later;
      yield 2;
    }
    const results = inOrder(slow(), async (n) => n * 2, { items: 8 });
    assert.deepEqual((await results.next()).value, [1, 2]);
    more();
    assert.deepEqual((await results.next()).value, [2, 4]);
    assert.equal((await results.next()).done, true);
  });

  test('holds no more of large items than the size says, and any one by itself', async () => {
    let [held, most] = [0, 0];
    const sizes = [1, 1, 60, 1, 500, 1, 1, 60, 60, 1];
    const work = async (n: number) => {
      held += sizes[n] ?? 0;
      // The item that was taken last may be one too many, so it does not count.
      most = Math.max(most, held - (sizes[n] ?? 0));
      await sleep(1);
      return n;
    };
    const got: number[] = [];
    const size = { of: (n: number) => sizes[n] ?? 0, most: 100 };
    for await (const [item] of inOrder(numbers(sizes.length), work, { items: 8, size })) {
      held -= sizes[item] ?? 0;
      got.push(item);
    }
    assert.deepEqual(got, [...sizes.keys()]);
    assert.ok(most <= 100, `${most}`);
  });

  test('throws what one item throws, after the results before it, and reads no further', async () => {
    let read = 0;
    async function* counted() {
      for await (const n of numbers(100)) {
        read = n;
        yield n;
      }
    }
    const work = async (n: number) => {
      if (n === 5 || n === 6) throw new Error(`number ${n}`);
      return n;
    };
    const got: number[] = [];
    const all = async () => {
      for await (const [item] of inOrder(counted(), work, { items: 4 })) got.push(item);
    };
    await assert.rejects(all(), new Error('number 5'));
    assert.deepEqual([got, read < 12], [[0, 1, 2, 3, 4], true]);
  });
});
