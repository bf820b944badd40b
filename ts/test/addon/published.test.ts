import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { familyOf } from '../../src/model/family.ts';
import { tryReferences } from '../../src/model/references.ts';
import { startEngine, textOf } from './model-folders.ts';
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
    ['noulxp-cut', 'noulxp', 'noulxp.json'],
  ] as const) {
    test(`is known by the file of its folder: ${folder}`, async () => {
      assert.deepEqual(await familyOf(join(PUBLISHED, folder)), { name, file });
    });
  }

  test('has the conformance file of its package as its reference answers', async (t) => {
    const folder = join(PUBLISHED, 'noulxp-cut');
    const engine = await startEngine(t, { model: folder });
    assert.equal(await tryReferences(engine, folder, new AbortController().signal), 32);
  });
});
