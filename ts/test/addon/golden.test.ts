import { suite, test } from 'node:test';
import { assertGolden, type Fixture, fixture, goldenLines, startEngine, TOLERANCES, textOf } from './model-folders.ts';

suite('the addon answers as the reference', () => {
  for (const [name, tolerance] of Object.entries(TOLERANCES) as [Fixture, number][]) {
    test(`on the model ${name}`, async (t) => {
      const engine = await startEngine(t, { model: fixture(name) });
      for (const golden of goldenLines(fixture(name))) {
        assertGolden(textOf(await engine.decide(Buffer.from(golden.body))), golden, tolerance);
      }
    });
  }
});
