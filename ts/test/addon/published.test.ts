import assert from 'node:assert/strict';
import { cpSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { loadEngine } from '../../src/engine/addon.ts';
import { familyOf } from '../../src/model/family.ts';
import { tryReferences } from '../../src/model/references.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { engineOptions, startEngine, textOf } from './model-folders.ts';
import { assertPublished, FAMILIES, PUBLISHED, publishedGolden } from './published-folders.ts';

suite('a model in the form of its maker', () => {
  for (const [family, oracle] of Object.entries(FAMILIES)) {
    test(`answers as the maker's code: ${family}`, async (t) => {
      const engine = await startEngine(t, { model: join(PUBLISHED, family) });
      const golden = publishedGolden(family);
      for (const line of golden) await assertPublished(engine, line, oracle);
      assert.ok(golden.filter(({ answers }) => answers !== undefined).length >= 20);
    });

    test(`shows the text and the order of every part in its answers: ${family}`, async (t) => {
      const engine = await startEngine(t, { model: join(PUBLISHED, family) });
      const texts = ['order late', 'refund phone', 'billing', 'card twice', 'support', 'price outage'];
      const ask = async ([state, instructions, first, about, second, more]: readonly string[]) => {
        const criteria = { [first ?? '']: about, [second ?? '']: more };
        const body = { state, questions: { q: { type: 'choice', instructions, criteria } } };
        const { answers } = JSON.parse(textOf(await engine.decide(Buffer.from(JSON.stringify(body)))));
        return Object.values<number>(answers.q.probabilities)[0] ?? assert.fail();
      };
      const before = await ask(texts);
      for (const [index, text] of texts.entries()) {
        // open-jev reads no descriptions.
        if (family.startsWith('open-jev') && [3, 5].includes(index)) continue;
        // The template of the strict package leaves out the name of an option that has a description.
        if (family === 'noulxp-strict' && !text.includes(' ')) continue;
        const changed = text.includes(' ') ? text.split(' ').toReversed().join(' ') : `${text} invoice`;
        const difference = Math.abs((await ask(texts.with(index, changed))) - before);
        assert.ok(difference > 1e-4, `${text}: ${difference}`);
      }
    });
  }

  for (const [folder, name, file] of [
    ['laya-english', 'laya', 'rl_agent_config.json'],
    ['laya-multilingual', 'laya', 'config.json'],
    ['julia', 'julia', 'tokenizer.json'],
    ['jevhome', 'jevhome', 'decision_config.json'],
    ['jevhome-e', 'jevhome', 'decision_config.json'],
    ['laya-split-q8', 'laya', 'rl_agent_config.json'],
    ['decima-bare', 'decima', 'onnx/fp32/decima.json'],
    ['opendecider', 'opendecider', 'opendecider.json'],
    ['gliner2.5-decide', 'gliner-decide', 'config.json'],
    ['open-jev', 'open-jev', 'config.json'],
    ['noulxp-cut', 'noulxp', 'noulxp.json'],
  ] as const) {
    test(`is known by the file of its folder: ${folder}`, async () => {
      assert.deepEqual(await familyOf(join(PUBLISHED, folder)), { name, file });
    });
  }

  for (const [folder, file, change, problem] of [
    ['laya-english', 'rl_agent_config.json', { max_len: 'x' }, /^max_len: must be a whole number$/],
    ['laya-english', 'rl_agent_config.json', { temperature: [1, 'x'] }, /^temperature\[1\]: must be a number$/],
    [
      'laya-english',
      'rl_agent_config.json',
      { temperature_by_options: { 'choice:7': 1 } },
      /^temperature_by_options\.choice:7: is not a type and a number of options such as choice:3-5$/,
    ],
    ['laya-english', 'tokenizer.json', { added_tokens: [] }, /^added_tokens: no token "\[CLS\]"$/],
    ['laya-multilingual', 'config.json', { laya: { head_max_len: -1 } }, /^head_max_len: must be a whole number$/],
    ['jevhome', 'decision_config.json', { ordinal: true }, /^ordinal: cannot be served$/],
    ['jevhome', 'calibration_u.json', { 'noul:2': 'x' }, /^noul:2: must be a number$/],
    ['jevhome-e', 'decision_config.json', { variant: 'cross' }, /^variant: only "bi" is served, not "cross"$/],
    ['decima-bare', 'onnx/fp32/decima.json', { temperature: 0 }, /^temperature: must be greater than 0$/],
    ['decima-bare', 'onnx/fp32/decima.json', { max_choice_tokens: 3 }, /^max_choice_tokens: must be at least 4$/],
    ['decima-bare', 'onnx/fp32/decima.json', { ordinal: { ord_g_w: [1] } }, /^ordinal: missing field `ord_g_b`/],
    ['opendecider', 'opendecider.json', { special_ids: {} }, /^special_ids\.cls: must be a token's id$/],
    [
      'noulxp-cut',
      'noulxp.json',
      { standard: 'noulxp/0.3' },
      /^standard: "noulxp\/0\.3" is not one of noulxp\/0\.1, noulxp\/0\.2$/,
    ],
    [
      'noulxp-cut',
      'noulxp.json',
      { profile: 'causal-letters' },
      /^profile: only encoder-markers can be served, not "causal-letters"$/,
    ],
    ['noulxp-cut', 'noulxp.json', { weights: { path: '../x.onnx' } }, /^weights\.path: must be a file of this folder$/],
    ['noulxp-cut', 'noulxp.json', { limits: { max_tokens: 9 } }, null],
    ['noulxp-cut', 'calibration.json', { temperature: { noul: 0 } }, null],
    ['noulxp-cut', 'template.json', { truncation: 'no' }, /^truncation: must be strict or truncate-state$/],
    ['noulxp-cut', 'template.json', { layout: [{ token: 'x' }] }, /^layout: \{"token":"x"\} is no part of a row$/],
  ] as const) {
    test(`is refused with one line: ${folder}, ${file}, ${JSON.stringify(change)}`, async (t) => {
      const path = join(temporaryFolder(t), folder);
      cpSync(join(PUBLISHED, folder), path, { recursive: true });
      const content = JSON.parse(readFileSync(join(path, file), 'utf8'));
      writeFileSync(join(path, file), JSON.stringify({ ...content, ...change }));
      const { message } = await loadEngine(engineOptions({ model: path })).then(
        () => assert.fail('it loads'),
        (error: Error) => error,
      );
      assert.ok(!message.includes('\n'), message);
      if (problem === null) return assert.match(message, /(budgets\.total: is over limits\.max_tokens|sha256|noul)/);
      const start = `${join(realpathSync(path), file)}: `;
      assert.ok(message.startsWith(start), message);
      assert.match(message.slice(start.length), problem);
    });
  }

  test('is loaded although it takes only options with descriptions, and questions with instructions', async (t) => {
    const folder = join(temporaryFolder(t), 'm');
    cpSync(join(PUBLISHED, 'noulxp-cut'), folder, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(folder, 'noulxp.json'), 'utf8'));
    const template = JSON.parse(readFileSync(join(folder, 'template.json'), 'utf8'));
    const { choice, noul } = template.options;
    for (const forms of [choice, noul.false, noul.true]) delete forms.bare;
    writeFileSync(join(folder, 'noulxp.json'), JSON.stringify({ ...manifest, template: { path: 'template.json' } }));
    writeFileSync(
      join(folder, 'template.json'),
      JSON.stringify({ ...template, truncation: 'strict', instructions: { required: true } }),
    );
    const engine = await startEngine(t, { model: folder });
    const ask = async (question: object) => {
      const body = JSON.stringify({ state: 'order late', questions: { q: question } });
      const { failure } = await engine.decide(Buffer.from(body));
      return failure?.message;
    };
    const criteria = { a: 'refund', b: 'phone' };
    assert.equal(await ask({ type: 'choice', instructions: 'card', criteria }), undefined);
    assert.equal(await ask({ type: 'choice', criteria }), 'q: the model needs instructions');
    const instructions = 'card';
    const needs = 'q: the model needs a description of each option';
    assert.equal(await ask({ type: 'choice', instructions, criteria: ['a', 'b'] }), needs);
    assert.equal(await ask({ type: 'noul', instructions }), needs);
    const levels = Array.from({ length: 61 }, (_, index) => `${index}`);
    assert.equal(await ask({ type: 'score', instructions, criteria: levels }), 'q: more options than the model takes');
    assert.equal(
      await ask({ type: 'choice', instructions, criteria: { a: 'late '.repeat(99), b: 'b' } }),
      'too many tokens for this model, which reads at most 128 and may not cut these texts',
    );
  });

  for (const [folder, without, problem] of [
    ['laya-split-q8', 'head_q8.onnx', 'encoder_q8.onnx: there is no head_q8.onnx, which it needs'],
    ['jevhome-e', 'scorer.onnx', 'scorer.onnx: no such file'],
    ['decima-bare', 'onnx/fp32/scorer.onnx', 'onnx/fp32/scorer.onnx: no such file'],
  ] as const) {
    test(`is refused with one line without its second graph: ${folder}`, async (t) => {
      const path = join(temporaryFolder(t), folder);
      cpSync(join(PUBLISHED, folder), path, { recursive: true });
      rmSync(join(path, without));
      const message = `${join(realpathSync(path), problem)}`;
      await assert.rejects(loadEngine(engineOptions({ model: path })), { message });
    });
  }

  test('with several encoders begins with the one of the usual name', async (t) => {
    const path = join(temporaryFolder(t), 'laya');
    cpSync(join(PUBLISHED, 'laya-split-q8'), path, { recursive: true });
    cpSync(join(path, 'encoder_q8.onnx'), join(path, 'encoder_q4.onnx'));
    const message = `${join(realpathSync(path), 'encoder_q4.onnx')}: there are 2 encoders: keep one`;
    await assert.rejects(loadEngine(engineOptions({ model: path })), { message });
    for (const part of ['encoder', 'head']) {
      cpSync(join(PUBLISHED, 'laya-split', `${part}.onnx`), join(path, `${part}.onnx`));
    }
    const engine = await startEngine(t, { model: path });
    const oracle = FAMILIES['laya-split'] ?? assert.fail();
    for (const line of publishedGolden('laya-split').slice(0, 5)) await assertPublished(engine, line, oracle);
  });

  test('has the conformance file of its package as its reference answers', async (t) => {
    const folder = join(PUBLISHED, 'noulxp-cut');
    const engine = await startEngine(t, { model: folder });
    assert.equal(await tryReferences(engine, folder, new AbortController().signal), 32);
  });
});
