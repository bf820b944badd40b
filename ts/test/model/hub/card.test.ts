import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { licenceIn, licenceOf } from '../../../src/model/hub/card.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const card = (...lines: string[]) => ['---', ...lines, '---', '# A model', 'license: of the text'].join('\n');

suite('the licence in a card', () => {
  for (const [lines, licence] of [
    [['language: en', 'license: apache-2.0', 'tags:', '- onnx'], 'apache-2.0'],
    [['license: "mit" # the same as the code'], 'mit'],
    [['license:', '- mit', '- apache-2.0'], 'mit, apache-2.0'],
    [['license:', '  - mit'], 'mit'],
    [['license: [mit, cc-by-4.0]'], 'mit, cc-by-4.0'],
    [['license: other', 'license_name: our-terms', 'license_link: LICENSE'], 'our-terms'],
    [['license: other'], 'other'],
    [['language: en'], undefined],
    [['other:', '  license: mit'], undefined],
    [['license:'], undefined],
  ] as const) {
    test(`is read: ${lines.join('; ')}`, () => {
      assert.equal(licenceOf(card(...lines)), licence);
      assert.equal(licenceOf(card(...lines).replaceAll('\n', '\r\n')), licence);
    });
  }

  test('is none without data, and without a card', async (t) => {
    for (const text of ['', '# A model\nlicense: mit', '---\nlicense: mit']) assert.equal(licenceOf(text), undefined);
    assert.equal(await licenceIn(temporaryFolder(t)), undefined);
  });

  test('is not taken at any length', () => {
    assert.equal(licenceOf(card(`license: ${'x'.repeat(1000)}`))?.length, 100);
  });
});
