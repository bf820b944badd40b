import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { canonicalQuestions } from '../../src/engine/addon.ts';
import type { Engine } from '../../src/engine/contract.ts';
import { calibrated } from '../../src/tune/fit.ts';
import { logLoss, mean } from '../../src/tune/measures.ts';
import { copyOfFixture, startEngine, textOf } from '../addon/model-folders.ts';
import { PUBLISHED } from '../addon/published-folders.ts';
import { runSvc, SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { drawn, randomNumbers, states } from './labelled-rows.ts';

/** A question whose option names look like integers: their order is the caller's, not that of a JavaScript object. */
const TEAM = '{"type":"choice","instructions":"Which team?","criteria":{"9":"payments","10":"bugs","1":"pricing"}}';
const TEAM_OPTIONS = ['9', '10', '1'];
const REFUND = '{"type":"noul","instructions":"Money back?"}';
const ANGER = '{"type":"score","instructions":"How angry?","criteria":["calm","annoyed","furious"]}';

/** The change to the model's probabilities from which labels are drawn: they are less sure, and shifted. */
const TRUTH = { temperature: 3, bias: [1.2, -0.6, -0.6] };

const KEY = createHash('sha256')
  .update('["choice","Which team?",[["9","payments"],["10","bugs"],["1","pricing"]]]')
  .digest('hex');

const REFUND_KEY = createHash('sha256').update('["noul","Money back?",[["false",null],["true",null]]]').digest('hex');

/** Returns the probabilities of the teams that a model gives each state. */
async function teamsOf(engine: Engine, texts: readonly string[]): Promise<number[][]> {
  const found: number[][] = [];
  for (const text of texts) {
    const body = `{"state":${JSON.stringify(text)},"questions":{"team":${TEAM}}}`;
    const { answers } = JSON.parse(textOf(await engine.decide(Buffer.from(body))));
    found.push(TEAM_OPTIONS.map((name) => answers.team.probabilities[name]));
  }
  return found;
}

/** Returns the probabilities from which the labels are drawn, for these probabilities of the model. */
function truthOf(probabilities: readonly number[]): Float64Array {
  return calibrated(
    probabilities.map((p) => Math.log(p)),
    TRUTH,
  );
}

const rowOf = (state: string, question: string, label: unknown) =>
  `{"state":${JSON.stringify(state)},"q":${question},"label":${JSON.stringify(label)}}`;

interface Labelled {
  readonly folder: string;
  readonly file: string;
  readonly texts: readonly string[];
}

/** Returns a file with `count` rows about teams, whose labels are drawn from the model's changed probabilities. */
async function labelledFile(t: TestContext, model: string, count: number): Promise<Labelled> {
  const folder = temporaryFolder(t);
  const texts = states(count);
  const random = randomNumbers(7);
  const probabilities = await teamsOf(await startEngine(t, { model }), texts);
  const rows = texts.map((text, index) => {
    return rowOf(text, TEAM, TEAM_OPTIONS[drawn(truthOf(probabilities[index] ?? []), random)]);
  });
  const file = join(folder, 'labelled.jsonl');
  writeFileSync(file, `${rows.join('\n')}\n`);
  return { folder, file, texts };
}

const tune = (t: TestContext, cwd: string, ...args: string[]) =>
  runSvc(t, ['tune', '--device', 'cpu', ...args], { cwd });

/** Returns the report on the one question of each list of rows, which are tuned apart from each other. */
async function reportsOf(t: TestContext, model: string, lists: readonly (readonly string[])[]) {
  const folder = temporaryFolder(t);
  const found = lists.map(async (rows, index) => {
    const file = join(folder, `${index}.jsonl`);
    writeFileSync(file, `${rows.join('\n')}\n`);
    const { stdout } = await tune(t, folder, '--json', '--data', file, '--model', model, '--out', `${index}`);
    return JSON.parse(stdout)[0];
  });
  return await Promise.all(found);
}

const contentOf = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.includes('.'))
      .map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex'),
      ]),
  );

suite('svc tune', { concurrency: 2 }, () => {
  test('writes a folder whose probabilities fit other states better, and leaves the model as it was', async (t) => {
    const model = copyOfFixture(t, 'shared-state');
    const before = contentOf(model);
    const { folder, file } = await labelledFile(t, model, 500);
    const { code, stdout, stderr } = await tune(t, folder, '--data', file, '--out', 'mine', '--model', model);
    assert.equal(stderr, 'mine: 1 of 1 questions calibrated; svc serve --model mine\n');
    assert.equal(code, 0);
    assert.match(stdout, /^"Which team\?" \(choice of 3\): 500 labels about 500 states\n/);
    assert.match(stdout, /\n {2}temperature \d+\.\d+, bias "9" \d\.\d+, "10" -\d\.\d+, "1" -\d\.\d+\n$/);

    const out = join(folder, 'mine');
    assert.deepEqual(contentOf(model), before);
    assert.deepEqual({ ...contentOf(out), 'config.json': '' }, { ...before, 'config.json': '' });
    const { calibration, ...rest } = JSON.parse(readFileSync(join(out, 'config.json'), 'utf8'));
    assert.deepEqual(rest, JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')));
    assert.deepEqual(Object.keys(calibration), [KEY]);
    assert.deepEqual(readdirSync(folder).toSorted(), ['labelled.jsonl', 'mine']);

    // These states were not in the file; they are judged by the probabilities from which labels are drawn.
    const others = states(700).slice(500);
    const plain = await teamsOf(await startEngine(t, { model }), others);
    const tuned = await teamsOf(await startEngine(t, { model: out }), others);
    const loss = (answers: readonly number[][]) =>
      mean(
        answers.map((probabilities, index) => {
          const truth = truthOf(plain[index] ?? []);
          return mean([...truth].map((share, label) => truth.length * share * logLoss({ probabilities, label })));
        }),
      );
    const [best, was, is] = [loss(plain.map((p) => [...truthOf(p)])), loss(plain), loss(tuned)];
    assert.ok(is - best < (was - best) / 10, `${was} to ${is}, at best ${best}`);
  });

  test('leaves out what was published with the model, and references that no longer hold', async (t) => {
    const model = copyOfFixture(t, 'marker');
    for (const name of ['package.json', 'README.md', 'calibration.svg', 'LICENSE'])
      writeFileSync(join(model, name), '{}');
    const golden = join(model, 'golden.jsonl');
    const others = readFileSync(golden, 'utf8');
    const wrong = '{"team":{"9":1,"10":0,"1":0}}';
    const line = `{"request":{"state":"x","questions":{"team":${TEAM}}},"probabilities":${wrong}}`;
    writeFileSync(golden, `${line}\n${others}`);
    const { folder, file } = await labelledFile(t, model, 300);
    const { code, stderr } = await tune(t, folder, '--data', file, '--out', 'mine', '--model', model);
    assert.equal(code, 0, stderr);
    const out = join(folder, 'mine');
    assert.deepEqual(readdirSync(out).toSorted(), [
      'LICENSE',
      'config.json',
      'golden.jsonl',
      'model.onnx',
      'tokenizer.json',
    ]);
    assert.equal(readFileSync(join(out, 'golden.jsonl'), 'utf8'), others);
    const checked = await runSvc(t, ['model', 'check', out, '--device', 'cpu'], { cwd: folder });
    assert.equal(checked.code, 0, checked.stdout);
  });

  test('finds the same again, and beside the calibrations that a folder has', async (t) => {
    const model = copyOfFixture(t, 'marker');
    const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8'));
    const other = { temperature: 2, bias: [0.25, 0] };
    writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, calibration: { [`${KEY}0`]: other } }));
    const { folder, file } = await labelledFile(t, model, 300);
    const args = ['--data', file, '--model', model];
    const runs = [await tune(t, folder, ...args, '--out', 'a'), await tune(t, folder, ...args, '--out', 'deep/b')];
    assert.deepEqual(
      runs.map(({ code }) => code),
      [0, 0],
      runs[0]?.stderr,
    );
    assert.equal(runs[0]?.stdout, runs[1]?.stdout);
    const calibrations = ['a', 'deep/b'].map((out) => {
      return JSON.parse(readFileSync(join(folder, out, 'config.json'), 'utf8')).calibration;
    });
    assert.deepEqual(calibrations[0], calibrations[1]);
    assert.deepEqual(Object.keys(calibrations[0]), [`${KEY}0`, KEY]);
    assert.deepEqual(calibrations[0][`${KEY}0`], other);

    // A second tuning has nothing left to gain, since it starts from the calibration that is now in the folder.
    const again = await tune(t, folder, '--data', file, '--model', join(folder, 'a'), '--out', 'c');
    assert.equal(again.code, 1);
    assert.match(again.stdout, /nothing is written for it: held-out log-likelihood (does not get|gets) better/);
    assert.equal(again.stderr, 'no question gets a calibration, so c is not written\n');
    assert.deepEqual(readdirSync(folder).toSorted(), ['a', 'deep', 'labelled.jsonl']);
  });

  for (const [what, question, one, other] of [
    [
      'a temperature for the number of options like one for the type',
      TEAM,
      { temperature: { choice: 2, score: 1, noul: 1 } },
      {
        temperature: { choice: 1, score: 1, noul: 1 },
        temperature_by_options: [{ type: 'choice', min: 3, max: null, temperature: 2 }],
      },
    ],
    [
      'a bias for the form of a question like one for the question',
      REFUND,
      { calibration: { [REFUND_KEY]: { temperature: 1.5, bias: [0, 0.7] } } },
      { temperature: { choice: 1, score: 1, noul: 1.5 }, noul_bias: { question: 0.7, statement: -3 } },
    ],
  ] as const) {
    test(`begins with ${what}`, async (t) => {
      const folder = temporaryFolder(t);
      const numbers = randomNumbers(11);
      const label = () => (question === TEAM ? TEAM_OPTIONS[Math.floor(3 * numbers() ** 2)] : numbers() < 0.2);
      const file = join(folder, 'labelled.jsonl');
      const rows = states(300).map((text) => rowOf(text, question, label()));
      writeFileSync(file, `${rows.join('\n')}\n`);
      const reports = await Promise.all(
        [one, other].map(async (entries, index) => {
          const model = copyOfFixture(t, 'marker');
          const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8'));
          writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, ...entries }));
          return tune(t, folder, '--json', '--data', file, '--model', model, '--out', `out${index}`);
        }),
      );
      const [first, second] = reports.map(({ stdout }) => JSON.parse(stdout)[0]);
      assert.deepEqual(second, first);
      assert.ok(first.calibration !== undefined, JSON.stringify(first));
    });
  }

  test('calibrates yes or no as a choice like a noul, where the model reads them alike', async (t) => {
    const model = copyOfFixture(t, 'shared-state-int8');
    const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8'));
    const biased = { ...config, noul_bias: { question: 0.7 } };
    writeFileSync(join(model, 'config.json'), JSON.stringify(biased));
    const numbers = randomNumbers(11);
    const labels = states(300).map((text) => [text, numbers() < 0.2] as const);
    const asChoice = REFUND.replace('noul', 'choice').replace(/\}$/, ',"criteria":["yes","no"]}');
    const [noul, choice] = await reportsOf(t, model, [
      labels.map(([text, label]) => rowOf(text, REFUND, label)),
      labels.map(([text, label]) => rowOf(text, asChoice, label ? 'yes' : 'no')),
    ]);
    // Sums in another order differ in their last bits.
    const rounded = (value: unknown) =>
      JSON.stringify(value, (_, part) => (typeof part === 'number' ? part.toFixed(9) : part));
    assert.equal(rounded([choice.before, choice.after]), rounded([noul.before, noul.after]));
    assert.equal(choice.calibration.temperature, noul.calibration.temperature);
    assert.deepEqual(choice.calibration.bias, noul.calibration.bias.toReversed());
  });

  test('calibrates levels in words like the options of a choice, where the model reads them alike', async (t) => {
    const model = copyOfFixture(t, 'shared-state-int8');
    const numbers = randomNumbers(13);
    const labels = states(300).map((text) => [text, Math.floor(numbers() * 3)] as const);
    const levels = ['calm', 'annoyed', 'furious'];
    const asChoice = ANGER.replace('score', 'choice');
    const [score, choice] = await reportsOf(t, model, [
      labels.map(([text, level]) => rowOf(text, ANGER, level)),
      labels.map(([text, level]) => rowOf(text, asChoice, levels[level])),
    ]);
    assert.deepEqual([score.before, score.after], [choice.before, choice.after]);
    assert.deepEqual(score.calibration, choice.calibration);
  });

  test('refuses options of one description, where the model reads them as one', async (t) => {
    const folder = temporaryFolder(t);
    const model = copyOfFixture(t, 'shared-state-int8');
    const question = '{"type":"choice","instructions":"Which team?","criteria":{"a":"money","b":"bugs","c":"money"}}';
    const rows = states(60).map((text, index) => rowOf(text, question, index % 2 ? 'a' : 'b'));
    const file = join(folder, 'labelled.jsonl');
    writeFileSync(file, `${rows.join('\n')}\n`);
    const { code, stderr } = await tune(t, folder, '--data', file, '--model', model, '--out', 'out');
    const reason = 'options with the same description are one to this model, so their probabilities cannot be fitted';
    assert.deepEqual([code, stderr], [1, `${file}: line 1: ${reason}\n`]);
    assert.ok(!existsSync(join(folder, 'out')));
  });

  test('reads CSV as it reads JSON lines, and prints the report as JSON', async (t) => {
    const model = copyOfFixture(t, 'marker');
    const { folder, file } = await labelledFile(t, model, 300);
    const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const records = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => {
        const { state, label } = JSON.parse(line);
        const criteria = /"criteria":(\{.*?\})/.exec(line)?.[1] ?? '';
        return ['choice', 'Which team?', quoted(criteria), label, quoted(state)].join(',');
      });
    const csv = join(folder, 'labelled.csv');
    const more = 'noul,Money back?,,TRUE,yes please';
    writeFileSync(csv, `type,instructions,criteria,label,state\n${[...records, more].join('\n')}\n`);
    const args = ['--json', '--model', model];
    const [lines, table] = [
      JSON.parse((await tune(t, folder, ...args, '--data', file, '--out', 'a')).stdout),
      JSON.parse((await tune(t, folder, ...args, '--data', csv, '--out', 'b')).stdout),
    ];
    assert.deepEqual(table.slice(0, 1), lines);
    assert.deepEqual([lines[0].key, lines[0].options], [KEY, TEAM_OPTIONS]);
    assert.deepEqual([table[1].type, table[1].labels, table[1].calibration], ['noul', 1, undefined]);
    assert.match(table[1].reason, /^1 labels about 1 different states, at least 50 states are needed$/);
  });

  test('leaves the questions that have too few labels, and writes nothing when all have', async (t) => {
    const folder = temporaryFolder(t);
    const model = copyOfFixture(t, 'marker');
    const rows = states(20).flatMap((text, index) => [rowOf(text, REFUND, index > 9), rowOf(text, ANGER, index % 3)]);
    writeFileSync(join(folder, 'few.jsonl'), rows.join('\n'));
    const { code, stdout, stderr } = await tune(t, folder, '--data', 'few.jsonl', '--out', 'mine', '--model', model);
    const few = 'nothing is written for it: 20 labels about 20 different states, at least 50 states are needed';
    assert.deepEqual(stdout.split('\n'), [
      '"Money back?" (noul): 20 labels about 20 states',
      `  ${few}`,
      '',
      '"How angry?" (score of 3): 20 labels about 20 states',
      `  ${few}`,
      '',
    ]);
    assert.equal(stderr, 'no question gets a calibration, so mine is not written\n');
    assert.equal(code, 1);
    assert.deepEqual(readdirSync(folder), ['few.jsonl']);
  });

  for (const [what, row, problem] of [
    ['no JSON', '{"state":', 'not valid JSON'],
    ['no object', '[]', 'must be an object with state, q and label'],
    ['no state', `{"q":${REFUND},"label":true}`, 'no "state"'],
    ['no question', '{"state":"x","label":true}', 'no "q"'],
    ['no label', `{"state":"x","q":${REFUND}}`, 'no "label"'],
    ['an unknown type', rowOf('x', '{"type":"maybe"}', 1), 'unknown type "maybe"'],
    ['one option', rowOf('x', '{"type":"choice","criteria":["a"]}', 'a'), 'need at least two options'],
    ['a label of another type', rowOf('x', REFUND, 'true'), 'label "true" is no answer: must be true or false'],
    ['an unknown option', rowOf('x', TEAM, 'law'), 'label "law" is no answer: must be one of "9", "10", "1"'],
    ['a number for an option', rowOf('x', TEAM, 9), 'label 9 is no answer: must be one of "9", "10", "1"'],
    ['a level too high', rowOf('x', ANGER, 3), 'label 3 is no answer: must be a level from 0 to 2'],
    ['a level below 0', rowOf('x', ANGER, -1), 'label -1 is no answer: must be a level from 0 to 2'],
  ] as const) {
    test(`refuses a row with ${what} in one line that says which`, async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'd.jsonl'), `${rowOf('x', REFUND, true)}\n\n${row}\n`);
      const { code, stdout, stderr } = await tune(t, folder, '--data', 'd.jsonl', '--out', 'o');
      assert.equal(stderr, `d.jsonl: line 3: ${problem}\n`);
      assert.deepEqual([code, stdout, existsSync(join(folder, 'o'))], [1, '', false]);
    });
  }

  for (const [args, line] of [
    [['--out', 'o'], 'which labelled rows? Give --data FILE; see svc tune --help'],
    [['--data', 'd.jsonl'], 'where does the model folder go? Give --out DIR; see svc tune --help'],
    [['--data', 'd.jsonl', '--out', 'o', '--seed', 'x'], '--seed: must be a whole number from 0 to 999999999'],
    [['--data', 'no.jsonl', '--out', 'o'], 'no.jsonl: cannot be read (ENOENT)'],
    [['--data', 'd.txt', '--out', 'o'], 'd.txt: must end in .jsonl, .ndjson, .csv or .tsv'],
    [['--data', 'empty.jsonl', '--out', 'o'], 'empty.jsonl: no rows'],
    [['--data', 'd.csv', '--out', 'o'], 'd.csv: no column "instructions"; there are state, type'],
    [['--data', 'bad.csv', '--out', 'o'], 'bad.csv: row 1: criteria is not valid JSON'],
    [['--data', 'd.jsonl', '--out', 'full'], 'full: is there already; --overwrite replaces it'],
    [
      ['--data', 'd.jsonl', '--out', 'full', '--overwrite'],
      'full: is no model folder, so --overwrite does not replace it',
    ],
    [['--data', 'd.jsonl', '--out', 'd.jsonl'], 'd.jsonl: is a file'],
    [['--data', 'd.jsonl', '--out', 'o', '--model', 'full'], /^\S+full.config\.json: no such file$/],
  ] as const) {
    test(`refuses ${args.join(' ')} in one line`, async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'd.jsonl'), rowOf('x', REFUND, true));
      writeFileSync(join(folder, 'empty.jsonl'), '\n');
      writeFileSync(join(folder, 'd.csv'), 'state,type\nx,noul\n');
      writeFileSync(join(folder, 'bad.csv'), 'state,type,instructions,criteria,label\nx,choice,y,{"a,a\n');
      mkdirSync(join(folder, 'full'));
      writeFileSync(join(folder, 'full', 'photo.jpg'), '');
      const { code, stdout, stderr } = await tune(t, folder, ...args);
      if (typeof line === 'string') assert.equal(stderr, `${line}\n`);
      else assert.match(stderr.trimEnd(), line);
      const isWrongUsage = typeof line === 'string' && /^--|see svc tune --help$/.test(line);
      assert.deepEqual([code, stdout], [isWrongUsage ? 2 : 1, '']);
      assert.ok(!existsSync(join(folder, 'o')) && existsSync(join(folder, 'full', 'photo.jpg')));
    });
  }

  test('refuses a model in the form of its maker', async (t) => {
    const [folder, model] = [temporaryFolder(t), join(PUBLISHED, 'jevhome')];
    writeFileSync(join(folder, 'd.jsonl'), rowOf('x', REFUND, true));
    const { code, stderr } = await tune(t, folder, '--data', 'd.jsonl', '--out', 'o', '--model', model);
    assert.match(
      stderr,
      /jevhome: calibrations go into a config\.json, and decision_config\.json takes its place in this folder\n$/,
    );
    assert.deepEqual([code, existsSync(join(folder, 'o'))], [1, false]);
  });

  test('takes away what it has begun when a signal ends it', async (t) => {
    const folder = temporaryFolder(t);
    const rows = states(5000).map((text, index) => rowOf(text, REFUND, index % 2 === 0));
    writeFileSync(join(folder, 'many.jsonl'), rows.join('\n'));
    const svc = new SvcProcess(t, ['tune', '--data', 'many.jsonl', '--out', 'mine'], { cwd: folder });
    let isOver = false;
    svc.finished.then(() => {
      isOver = true;
    });
    while (readdirSync(folder).length === 1 && !isOver) await sleep(10);
    svc.signal('SIGINT');
    const { code, stderr } = await svc.finished;
    // Windows ends a process at once for any signal.
    if (process.platform === 'win32') return;
    assert.deepEqual([code, stderr], [130, 'stopped; nothing is written\n']);
    assert.deepEqual(readdirSync(folder), ['many.jsonl']);
  });

  test('writes neither into the model nor over its labels, and replaces a folder when it is told to', async (t) => {
    const model = copyOfFixture(t, 'marker');
    const { folder, file } = await labelledFile(t, model, 300);
    const args = ['--data', file, '--model', model];
    for (const out of [model, join(model, 'inside'), join(model, '..')]) {
      const { stderr } = await tune(t, folder, ...args, '--out', out, '--overwrite');
      assert.match(stderr, /^--out: must be another folder than .*\n$/);
    }
    const out = copyOfFixture(t, 'pair-bert');
    writeFileSync(join(out, 'rows.jsonl'), readFileSync(file));
    const within = await tune(
      t,
      folder,
      '--model',
      model,
      '--data',
      join(out, 'rows.jsonl'),
      '--out',
      out,
      '--overwrite',
    );
    assert.equal(within.stderr, `${join(out, 'rows.jsonl')}: lies in ${out}, which would be replaced\n`);
    const { code } = await tune(t, folder, ...args, '--out', out, '--overwrite');
    assert.equal(code, 0);
    assert.deepEqual(Object.keys(contentOf(out)), Object.keys(contentOf(model)));
  });
});

suite('the canonical JSON of questions', () => {
  test('is one spelling in the order of the request', () => {
    const body = `{"state":null,"questions":{"b":${TEAM},"a":{"instructions":"é","type":"noul"}}}`;
    assert.deepEqual(
      canonicalQuestions(Buffer.from(body)).map(({ canonical }) => canonical),
      [
        '["choice","Which team?",[["9","payments"],["10","bugs"],["1","pricing"]]]',
        '["noul","é",[["false",null],["true",null]]]',
      ],
    );
  });

  test('is not there for what is no request', () => {
    assert.throws(() => canonicalQuestions(Buffer.from('{"state":1')), { code: 'invalid_json' });
  });
});
