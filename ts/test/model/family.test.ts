import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { familyOf, MAX_FAMILY_FILE_BYTES } from '../../src/model/family.ts';
import { type Fixture, fixture } from '../addon/model-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';

suite('the family of a model', () => {
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

  test('is none without a file, with one that is no JSON, and with one of any length', async (t) => {
    const folder = temporaryFolder(t);
    assert.equal(await familyOf(folder), undefined);
    writeFileSync(join(folder, 'config.json'), '{');
    assert.equal(await familyOf(folder), undefined);
    truncateSync(join(folder, 'config.json'), MAX_FAMILY_FILE_BYTES + 1);
    assert.equal(await familyOf(folder), undefined);
  });
});
