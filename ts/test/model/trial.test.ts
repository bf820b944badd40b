import assert from 'node:assert/strict';
import { appendFileSync, cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { defaultModel } from '../../src/engine/addon.ts';
import { memberText } from '../../src/files/json-member.ts';
import { sha256Of } from '../../src/files/sha256.ts';
import { tryReferences } from '../../src/model/references.ts';
import { copyOfFixture, type Fixture, fixture, startEngine, TOLERANCES } from '../addon/model-folders.ts';
import { PUBLISHED } from '../addon/published-folders.ts';
import { FakeEngine, untilCancelled } from '../fake-engine.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const never = new AbortController().signal;

/** The greatest number of reference answers that a trial asks for. */
const MOST_LINES = 32;

suite('the reference answers of a model folder', () => {
  test('are those that its engine gives, for every kind of model', async (t) => {
    const folders = [...(Object.keys(TOLERANCES) as Fixture[]).map(fixture), defaultModel()];
    for (const folder of folders) {
      const engine = await startEngine(t, { model: folder });
      const lines = readFileSync(join(folder, 'golden.jsonl'), 'utf8').trimEnd().split('\n').length;
      assert.equal(await tryReferences(engine, folder, never), Math.min(lines, MOST_LINES), folder);
    }
  });

  test('need not be there', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    rmSync(join(folder, 'golden.jsonl'));
    assert.equal(await tryReferences(await startEngine(t, { model: folder }), folder, never), 0);
  });

  test('may be over the limits of the server', async (t) => {
    const engine = await startEngine(t, { model: fixture('marker'), maxTokens: 1 });
    assert.equal(await tryReferences(engine, fixture('marker'), never), MOST_LINES);
  });

  test('may have other probabilities where products cannot be exact, but no other answers', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    const engine = await startEngine(t, { model: folder });
    const info = engine.info();
    t.mock.method(engine, 'info', () => ({ ...info, exactness: 'cannot be' }));
    const reference = (probabilities: string) =>
      `{"request":{"state":"","questions":{"a":{"type":"noul"}}},"probabilities":${probabilities}}`;
    writeFileSync(join(folder, 'golden.jsonl'), reference('{"a":{"true":9}}'));
    assert.equal(await tryReferences(engine, folder, never), 1);
    writeFileSync(join(folder, 'golden.jsonl'), reference('{"a":{"maybe":0}}'));
    await assert.rejects(tryReferences(engine, folder, never), {
      message: /a: maybe is undefined, the reference is 0$/,
    });
  });

  test('are those of the conformance file of a NoulXP package, which may also say that there is none', async (t) => {
    const folder = join(temporaryFolder(t), 'm');
    cpSync(join(PUBLISHED, 'noulxp-cut'), folder, { recursive: true });
    const engine = await startEngine(t, { model: folder });
    const request = '{"state":"","questions":{"a":{"type":"noul"}}}';
    const manifest = JSON.parse(readFileSync(join(folder, 'noulxp.json'), 'utf8'));
    const conformance = (result: string) => {
      const text = `{"id":"r","request":${request},${result}}\n`;
      writeFileSync(join(folder, 'conformance.jsonl'), text);
      Object.assign(manifest.conformance, { sha256: sha256Of(text).toUpperCase() });
      writeFileSync(join(folder, 'noulxp.json'), JSON.stringify(manifest));
    };
    conformance('"expected":{"a":{"type":"noul","probabilities":{"true":9}}}');
    await assert.rejects(tryReferences(engine, folder, never), {
      message: /conformance\.jsonl: line 1: a: true is [\d.]+, the reference is 9$/,
    });
    conformance('"error":{"type":"RequestError","message":"no"}');
    await assert.rejects(tryReferences(engine, folder, never), {
      message: /conformance\.jsonl: line 1: has an answer, the reference has none$/,
    });
    appendFileSync(join(folder, 'conformance.jsonl'), '\n');
    await assert.rejects(tryReferences(engine, folder, never), {
      message: /conformance\.jsonl: has another sha256 than its package says$/,
    });
    rmSync(join(folder, 'conformance.jsonl'));
    assert.equal(await tryReferences(engine, folder, never), 0);
  });

  for (const [what, line, message] of [
    [
      'another model',
      '{"body":"{\\"state\\":\\"\\",\\"questions\\":{\\"a\\":{\\"type\\":\\"noul\\"}}}","probabilities":{"a":{"true":9}}}',
      /golden\.jsonl: line 1: a: true is [\d.]+, the reference is 9$/,
    ],
    [
      'another tokenizer',
      '{"request":{"state":"","questions":{"a":{"type":"noul"}}},"probabilities":{"a":{}},"input_tokens":1}',
      /golden\.jsonl: line 1: \d+ tokens, the reference has 1$/,
    ],
    [
      'a question that is not answered',
      '{"request":{"state":"","questions":{"a":{"type":"noul"}}},"probabilities":{"b":{"true":0}}}',
      /golden\.jsonl: line 1: b: true is undefined, the reference is 0$/,
    ],
    [
      'a request that is none',
      '{"request":{"state":""},"probabilities":{}}',
      /golden\.jsonl: line 1: questions missing$/,
    ],
    ['a line that is none', 'x', /golden\.jsonl: line 1: is no reference answer$/],
    ['a line without a request', '{"probabilities":{}}', /golden\.jsonl: line 1: is no reference answer$/],
  ] as const) {
    test(`refuse ${what}, with the line`, async (t) => {
      const folder = copyOfFixture(t, 'marker');
      writeFileSync(join(folder, 'golden.jsonl'), `${line}\n`);
      await assert.rejects(tryReferences(await startEngine(t, { model: folder }), folder, never), {
        name: 'Refusal',
        message,
      });
    });
  }

  test('are in a file, not in what may have no end', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    const engine = await startEngine(t, { model: folder });
    rmSync(join(folder, 'golden.jsonl'));
    symlinkSync('/dev/zero', join(folder, 'golden.jsonl'));
    const message = `${join(folder, 'golden.jsonl')}: not a file`;
    await assert.rejects(tryReferences(engine, folder, never), { name: 'Refusal', message });
  });

  test('are not asked for any more once somebody wants to stop', async () => {
    const engine = new FakeEngine();
    engine.answer = untilCancelled;
    const stop = new AbortController();
    const trial = tryReferences(engine, fixture('marker'), stop.signal);
    await engine.called();
    stop.abort();
    await assert.rejects(trial, { name: 'AbortError' });
    assert.equal(engine.calls.length, 1);
  });

  test('are asked as they are written, numbers for names in their order', () => {
    assert.equal(memberText('{"a":1,"request" : {"10": "x", "2":1.0}}', 'request'), '{"10": "x", "2":1.0}');
  });
});
