import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { tryReferences } from '../../../src/model/references.ts';
import { startEngine } from '../../addon/model-folders.ts';
import { assertNear, FAMILIES, PUBLISHED, publishedGolden } from '../../addon/published-folders.ts';
import { runPython } from '../python.ts';
import { askOracle, compareWithOracle, tinyFolder } from './oracle.ts';

suite('the code of its maker and the engine give the same answers to 300 requests', () => {
  for (const [family, oracle] of Object.entries(FAMILIES)) test(family, (t) => compareWithOracle(t, oracle));

  for (const variant of ['english', 'multilingual']) {
    test(`laya-${variant}, with rows of another package`, (t) =>
      compareWithOracle(t, { name: 'laya_edgejev', variant }));
  }
});

suite('the committed answers are those that the code of the maker gives to the committed tiny model', () => {
  for (const [family, oracle] of Object.entries(FAMILIES)) {
    test(family, async () => {
      const golden = publishedGolden(family);
      const bodies = golden.map(({ body }) => body);
      const answers = await askOracle(oracle, join(PUBLISHED, family), bodies);
      for (const [index, { body: _, ...expected }] of golden.entries()) {
        const got = answers[index];
        assert.equal(got?.error === undefined, expected.error === undefined);
        for (const [id, probabilities] of Object.entries(expected.answers ?? {})) {
          assertNear(got?.answers?.[id], probabilities, id);
        }
      }
    });
  }
});

test('noulxp check passes on a package whose conformance file the engine reproduces', async (t) => {
  const folder = await tinyFolder(t, FAMILIES['noulxp-cut'] ?? assert.fail());
  const { code, stdout } = await runPython(['-m', 'noulxp', 'check', folder]);
  assert.equal(code, 0, stdout);
  const lines = readFileSync(join(folder, 'conformance.jsonl'), 'utf8').trimEnd().split('\n').length;
  assert.equal(lines, 52);
  const engine = await startEngine(t, { model: folder });
  assert.equal(await tryReferences(engine, folder, new AbortController().signal), 32);
});
