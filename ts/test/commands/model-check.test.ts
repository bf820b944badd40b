import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { copyOfFixture, type Fixture, fixture } from '../addon/model-folders.ts';
import { docBlocks } from '../doc-blocks.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const check = (t: TestContext, folder: string, ...flags: string[]) =>
  runSvc(t, ['model', 'check', folder, '--device', 'cpu', ...flags], { cwd: temporaryFolder(t) });

/** Returns the lines that begin with a title. */
const lines = (stdout: string, title: string) =>
  stdout.split('\n').flatMap((line) => (line.startsWith(`${title} `) ? [line.slice(9)] : []));

function spoilConfig(folder: string, changes: object): void {
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...changes }));
}

suite('svc model check', { concurrency: 2 }, () => {
  test('says what an exported folder is, decides once and ends with 0', async (t) => {
    const folder = realpathSync(copyOfFixture(t, 'pair-bert'));
    const { code, stdout, stderr } = await check(t, folder);
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(lines(stdout, 'folder'), [folder]);
    assert.deepEqual(lines(stdout, 'model'), ['pair-bert 0']);
    assert.deepEqual(lines(stdout, 'layout'), ['pair']);
    assert.deepEqual(
      lines(stdout, 'files').map((line) => line.replace(/[0-9a-f]{64}$/, '…')),
      [
        'config.json        832 B  sha256 …',
        'model.onnx        60 KiB  sha256 …',
        'tokenizer.json   4.1 KiB  sha256 …',
      ],
    );
    const axes = 'int64 [batch_size, sequence_length]';
    assert.deepEqual(lines(stdout, 'inputs'), [
      `input_ids ${axes}`,
      `attention_mask ${axes}`,
      `token_type_ids ${axes}`,
    ]);
    assert.deepEqual(lines(stdout, 'outputs'), ['logits float32 [batch_size, 3]']);
    assert.deepEqual(lines(stdout, 'labels'), [
      '0 entailment (taken for entailment)',
      '1 neutral',
      '2 contradiction (taken for contradiction)',
    ]);
    assert.deepEqual(lines(stdout, 'tokens'), ['272 in the vocabulary, at most 64 in a row']);
    assert.match(stdout, /\nrefund {2}(yes|no) {2}confidence \d\.\d\d\n(.|\n)*\nteam {2}(.|\n)*\nanger {2}/);
    assert.ok(stdout.endsWith(`\nit can be served: svc serve --model ${folder}\n`), stdout);
  });

  test('knows every layout, and what one logit is taken for', async (t) => {
    const layouts = { marker: 'marker', 'shared-state': 'shared-state', 'pair-reranker': 'pair' } as const;
    for (const [name, layout] of Object.entries(layouts) as [Fixture, string][]) {
      const { code, stdout } = await check(t, fixture(name));
      assert.equal(code, 0);
      assert.deepEqual(lines(stdout, 'layout'), [layout]);
      const labels = name === 'pair-reranker' ? ['0 LABEL_0 (taken for relevance)'] : [];
      assert.deepEqual(lines(stdout, 'labels'), labels);
    }
  });

  test('tells all that is missing or wrong at once, a line each, and ends with 1', async (t) => {
    const folder = realpathSync(copyOfFixture(t, 'pair-bert'));
    spoilConfig(folder, { temperature: { choice: 0, score: 1, noul: 1 } });
    rmSync(join(folder, 'tokenizer.json'));
    rmSync(join(folder, 'model.onnx'));
    const { code, stdout } = await check(t, folder);
    assert.equal(code, 1);
    assert.deepEqual(lines(stdout, 'problem').toSorted(), [
      `${join(folder, 'config.json')}: temperature.choice: must be greater than 0`,
      `${join(folder, 'tokenizer.json')}: no such file`,
      `${folder}: no .onnx file`,
    ]);
    assert.ok(stdout.endsWith('\nit cannot be served\n'), stdout);
  });

  test('finds what only a decision shows', async (t) => {
    const folder = realpathSync(copyOfFixture(t, 'pair-bert'));
    spoilConfig(folder, { id2label: { 0: 'entailment', 1: 'not_entailment' } });
    const { code, stdout } = await check(t, folder);
    assert.equal(code, 1);
    const problem = 'a trial decision failed: the graph gives 3 logits a row, id2label has labels for 2';
    assert.deepEqual(lines(stdout, 'problem'), [`${join(folder, 'model.onnx')}: ${problem}`]);
  });

  for (const [what, make, problems] of [
    [
      'labels without entailment',
      (folder: string) => spoilConfig(folder, { id2label: { 0: 'A', 1: 'B' } }),
      /: id2label: none of the labels is entailment: A, B; /,
    ],
    [
      'the inputs of another layout',
      (folder: string) => copyFileSync(join(fixture('marker'), 'model.onnx'), join(folder, 'model.onnx')),
      /: the graph wants an input "marker_pos" that its layout does not give$/,
    ],
    ['a graph that is none', (folder: string) => writeFileSync(join(folder, 'model.onnx'), 'text'), /model\.onnx: ./],
    [
      'a file that is another',
      (folder: string) => spoilConfig(folder, { files: { 'tokenizer.json': 'ab' } }),
      /: files\.tokenizer\.json: does not match the file, which has [0-9a-f]{64}$/,
    ],
    [
      'a graph that is another',
      (folder: string) => spoilConfig(folder, { sha256: 'ab' }),
      /: sha256: does not match model\.onnx, which has [0-9a-f]{64}$/,
    ],
  ] as const) {
    test(`tells ${what} in one line`, async (t) => {
      const folder = copyOfFixture(t, 'pair-bert');
      make(folder);
      const { code, stdout, stderr } = await check(t, folder);
      assert.deepEqual([code, stderr], [1, '']);
      const found = lines(stdout, 'problem');
      assert.equal(found.length, 1, stdout);
      assert.match(found[0] ?? '', problems);
    });
  }

  test('tells whether products are exact where a reference answer is another', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    const file = join(folder, 'golden.jsonl');
    const [first = ''] = readFileSync(file, 'utf8').split('\n');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(first), input_tokens: 1 }));
    const { code, stdout } = await check(t, folder);
    assert.equal(code, 1);
    assert.deepEqual(lines(stdout, 'products'), ['exact']);
    assert.match(lines(stdout, 'problem').join(), /golden\.jsonl: line 1: \d+ tokens, the reference has 1$/);
  });

  test('lets no label move the cursor or begin a line', async (t) => {
    const folder = copyOfFixture(t, 'pair-bert');
    spoilConfig(folder, { id2label: { 0: 'entailment\nlabels 9', 1: 'neutral\u001b[2J\u202e', 2: 'contradiction' } });
    const { code, stdout } = await check(t, folder);
    assert.equal(code, 0);
    assert.deepEqual(lines(stdout, 'labels').slice(0, 2), [
      '0 entailment\\u000alabels 9 (taken for entailment)',
      '1 neutral\\u001b[2J\\u202e',
    ]);
  });

  test('tells what is missing of an empty folder, and that there is no folder', async (t) => {
    const empty = join(realpathSync(temporaryFolder(t)), 'empty');
    mkdirSync(empty);
    const { code, stdout } = await check(t, empty);
    assert.equal(code, 1);
    assert.deepEqual(lines(stdout, 'problem'), [
      `${join(empty, 'config.json')}: no such file`,
      `${empty}: no .onnx file`,
      `${join(empty, 'tokenizer.json')}: no such file`,
    ]);
    const nowhere = join(empty, 'no');
    assert.deepEqual(lines((await check(t, nowhere)).stdout, 'problem'), [`${nowhere}: no such model folder`]);
  });

  test('and the other commands of the page on model folders do what it says', async (t) => {
    const blocks = docBlocks('model-folders.md').filter(({ language }) => language === 'sh');
    const commands = blocks.flatMap(({ text }) => text.trimEnd().split('\n'));
    assert.equal(commands.length, 2);
    for (const command of commands) {
      const [npx, program, ...args] = (command.match(/'[^']*'|\S+/g) ?? []).map((arg) => arg.replaceAll("'", ''));
      assert.deepEqual([npx, program], ['npx', '@svc/server']);
      const folder = copyOfFixture(t, 'pair-deberta');
      renameSync(folder, join(dirname(folder), 'my-model'));
      const { code, stdout } = await runSvc(t, args, { cwd: dirname(folder) });
      assert.equal(code, 0);
      assert.match(stdout, /^refund {2}(yes|no) {2}confidence /m);
    }
  });

  test('without a folder is about the model of the settings, and manifest about the embedded one', async (t) => {
    const cwd = temporaryFolder(t);
    const { code, stdout } = await runSvc(t, ['model', 'check'], { cwd, env: { SVC_MODEL: fixture('marker') } });
    assert.equal(code, 0);
    assert.deepEqual(lines(stdout, 'folder'), [fixture('marker')]);
    const manifest = await runSvc(t, ['model', 'manifest'], { cwd });
    assert.equal(manifest.code, 0);
    assert.equal(JSON.parse(manifest.stdout).name, 'svc-small');
  });

  test('prints the same as JSON', async (t) => {
    const good = JSON.parse((await check(t, fixture('pair-roberta'), '--json')).stdout);
    assert.deepEqual([good.servable, good.layout, good.name, good.maxLen], [true, 'pair', 'tiny-pair-roberta', 60]);
    assert.deepEqual(good.labels[2], { name: 'ENTAILMENT', role: 'entailment' });
    assert.deepEqual(Object.keys(good.answer.answers), ['refund', 'team', 'anger']);
    const { code, stdout } = await check(t, temporaryFolder(t), '--json');
    const bad = JSON.parse(stdout);
    assert.deepEqual([code, bad.servable, bad.problems.length, 'answer' in bad], [1, false, 3, false]);
  });
});
