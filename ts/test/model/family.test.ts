import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { familyOf, MAX_FAMILY_FILE_BYTES } from '../../src/model/family.ts';
import { type Fixture, fixture } from '../addon/model-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';

suite('the family of a model', () => {
  test('is not known by a tokenizer that lacks a token', async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'config.json'), '{"model_type":"extractor"}');
    const tokens = ['[P]', '[L]', '[DESCRIPTION]', '[SEP_STRUCT]'].map((content) => ({ content }));
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify({ added_tokens: tokens }));
    assert.equal((await familyOf(folder))?.name, 'pair');
  });

  for (const [name, family] of [
    ['marker', 'marker'],
    ['marker-no-action', 'marker'],
    ['shared-state', 'shared-state'],
    ['shared-state-int8', 'shared-state'],
    ['pair-bert', 'pair'],
    ['pair-reranker', 'pair'],
  ] as const satisfies readonly (readonly [Fixture, string])[]) {
    test(`is known by the file of its folder: ${name}`, async () => {
      assert.deepEqual(await familyOf(fixture(name)), { name: family, file: 'config.json' });
    });
  }

  for (const [what, config, family] of [
    ['a layout of its own', { layout: 'pair', special_ids: {} }, 'pair'],
    ['special tokens and the marks of an exported one', { special_ids: {}, model_type: 'bert' }, 'marker'],
    ['a layout of two graphs', { layout: 'late-interaction', architectures: [] }, 'late-interaction'],
    ['another one', { layout: 'bi-encoder' }, 'bi-encoder'],
    ['a layout that is not known', { layout: 'other', id2label: {} }, undefined],
    ['nothing', {}, undefined],
    ['a list', [], undefined],
    ['null', null, undefined],
  ] as const) {
    test(`is ${family ?? 'none'} where config.json has ${what}`, async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
      assert.equal((await familyOf(folder))?.name, family);
    });
  }

  for (const [family, file, content] of [
    ['laya', 'rl_agent_config.json', {}],
    ['laya', 'config.json', { model_type: 'modernbert', laya: {} }],
    ['jevhome', 'decision_config.json', { head: 'h2' }],
    [undefined, 'decision_config.json', { head: 'other' }],
    ['opendecider', 'opendecider.json', {}],
    ['noulxp', 'noulxp.json', {}],
    ['noulxp', 'odxp.json', {}],
    ['julia', 'julia_config.json', { architecture: 'JuliaDecisionModel' }],
    ['julia', 'config.json', { architectures: ['JuliaDecisionModel'] }],
    ['julia', 'tokenizer.json', { added_tokens: ['<mask>', '<bos>', '<eos>'].map((token) => ({ content: token })) }],
    [undefined, 'tokenizer.json', { added_tokens: [{ content: '<mask>' }, null] }],
  ] as const) {
    test(`is ${family ?? 'none'} where ${file} is ${JSON.stringify(content).slice(0, 60)}`, async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, file), JSON.stringify(content));
      assert.deepEqual(await familyOf(folder), family && { name: family, file });
      // A config.json that was written for this engine counts whatever else is there.
      writeFileSync(join(folder, 'config.json'), JSON.stringify({ layout: 'marker', laya: {} }));
      assert.deepEqual(await familyOf(folder), { name: 'marker', file: 'config.json' });
    });
  }

  test('is none without a file, with one that is no JSON, and with one of any length', async (t) => {
    const folder = temporaryFolder(t);
    assert.equal(await familyOf(folder), undefined);
    writeFileSync(join(folder, 'config.json'), '{');
    assert.equal(await familyOf(folder), undefined);
    truncateSync(join(folder, 'config.json'), MAX_FAMILY_FILE_BYTES + 1);
    assert.equal(await familyOf(folder), undefined);
  });
});
