import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { readLabels } from '../../src/tune/labels.ts';
import { copyOfFixture, REPOSITORY, startEngine, textOf } from '../addon/model-folders.ts';
import { docBlocks } from '../doc-blocks.ts';
import { runSvc, SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { randomNumbers, states } from './labelled-rows.ts';

const BLOCKS = docBlocks('calibration.md');
const blocksOf = (language: string) => BLOCKS.filter((block) => block.language === language).map(({ text }) => text);
const argsOf = (block: string) => block.trim().split(' ').slice(2);

/** Returns a report with its numbers replaced, since these depend on the model. */
const words = (report: string) => report.replaceAll(/-?\d+(\.\d+)?/g, '#').replaceAll(/ +/g, ' ');

suite('docs/calibration.md', () => {
  test('shows rows that are read, the same in both formats', async (t) => {
    const folder = temporaryFolder(t);
    const [lines = ''] = blocksOf('jsonl');
    const [table = ''] = blocksOf('csv');
    writeFileSync(join(folder, 'labelled.jsonl'), lines);
    writeFileSync(join(folder, 'labelled.csv'), table);
    const read = async (name: string) =>
      (await readLabels(join(folder, name), 2 ** 20)).map(({ stateJson, question: { key }, label }) => ({
        ...{ state: JSON.parse(stateJson), key, label },
      }));
    const rows = await read('labelled.jsonl');
    assert.deepEqual(
      rows.map(({ label }) => label),
      [1, 1, 1],
    );
    assert.deepEqual(await read('labelled.csv'), rows);
  });

  test('has commands that do what it says, and a report as it is printed', async (t) => {
    const cwd = temporaryFolder(t);
    const [tune = '', serve = ''] = blocksOf('sh');
    const [report = ''] = blocksOf('text');
    assert.equal(BLOCKS.length, 5);
    const model = copyOfFixture(t, 'marker');
    const engine = await startEngine(t, { model });
    const question = '{"type":"noul","instructions":"The message is spam."}';
    const random = randomNumbers(3);
    const rows = await Promise.all(
      states(300).map(async (text) => {
        const body = `{"state":${JSON.stringify(text)},"questions":{"spam":${question}}}`;
        const { noul } = JSON.parse(textOf(await engine.decide(Buffer.from(body)))).answers.spam;
        return `{"state":${JSON.stringify(text)},"q":${question},"label":${random() < noul ** 3}}`;
      }),
    );
    writeFileSync(join(cwd, 'labelled.jsonl'), rows.join('\n'));
    const args = argsOf(tune).map((arg) => arg.replace(/^.*\/(?=labelled\.jsonl$)/, ''));
    const { stdout, stderr, code } = await runSvc(t, args, { cwd, env: { SVC_MODEL: model } });
    assert.equal(code, 0, stdout + stderr);
    assert.equal(words(stdout), words(report));

    const svc = new SvcProcess(t, [...argsOf(serve), '--listen', '127.0.0.1:0'], { cwd });
    await svc.logged(/model .* loaded/);
    const response = await fetch(`${await svc.url()}/health`);
    const { dir, model: name } = (await response.json()) as { readonly dir: string; readonly model: string };
    assert.deepEqual([dir.endsWith('mine'), name], [true, 'tiny-marker']);
  });

  test('names a file to try, in the package, that gives the embedded model a calibration', async (t) => {
    const cwd = temporaryFolder(t);
    mkdirSync(join(cwd, 'node_modules', '@svc'), { recursive: true });
    symlinkSync(REPOSITORY, join(cwd, 'node_modules', '@svc', 'server'), 'junction');
    const { stdout, stderr, code } = await runSvc(t, argsOf(blocksOf('sh')[0] ?? ''), { cwd });
    assert.equal(code, 0, stdout + stderr);
    assert.match(stderr, /^mine: [12] of 2 questions calibrated; /m);
  });

  test('is linked from the pages that speak of it', () => {
    for (const page of ['model-folders.md', 'confidence.md']) {
      assert.match(readFileSync(join(REPOSITORY, 'docs', page), 'utf8'), /\(calibration\.md\)/, page);
    }
  });
});
