import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { defaultModel } from '../../src/engine/addon.ts';
import {
  answersText,
  assertGolden,
  fixture,
  goldenLines,
  PROCESSOR_TOLERANCE,
  startEngine,
  TOLERANCES,
  textOf,
} from '../addon/model-folders.ts';
import { LiveServer } from './live-server.ts';

suite('over HTTP every reference request has the answer of the reference, and that of the addon to the bit', () => {
  const models = [
    ['the embedded model', defaultModel(), PROCESSOR_TOLERANCE],
    ['marker', fixture('marker'), TOLERANCES.marker],
    ['shared-state', fixture('shared-state'), TOLERANCES['shared-state']],
    ['pair', fixture('pair-roberta'), TOLERANCES['pair-roberta']],
  ] as const;
  for (const [name, folder, tolerance] of models) {
    test(`of ${name}`, async (t) => {
      const server = await LiveServer.start(t, { model: folder });
      const engine = await startEngine(t, { model: folder });
      for (const golden of goldenLines(folder)) {
        const text = await server.answer(golden.body);
        assertGolden(text, golden, tolerance);
        const alone = textOf(await engine.decide(Buffer.from(golden.body)));
        assert.equal(answersText(text), answersText(alone), golden.name);
      }
    });
  }
});
