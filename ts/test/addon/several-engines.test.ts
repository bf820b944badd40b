import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Engine } from '../../src/engine/contract.ts';
import { answersText, type Fixture, fixture, goldenLines, startEngine, TOLERANCES, textOf } from './model-folders.ts';

const NAMES = Object.keys(TOLERANCES) as Fixture[];

/** Returns the answers of all reference requests, asked at once. */
async function answerAll(engine: Engine, name: Fixture): Promise<string[]> {
  const replies = goldenLines(fixture(name)).map(({ body }) => engine.decide(Buffer.from(body)));
  return (await Promise.all(replies)).map((reply) => answersText(textOf(reply)));
}

test('models of every layout in one process, all at work, answer as each of them alone', async (t) => {
  const alone: string[][] = [];
  for (const name of NAMES) {
    const engine = await startEngine(t, { model: fixture(name) });
    alone.push(await answerAll(engine, name));
  }
  const engines = await Promise.all(NAMES.map((name) => startEngine(t, { model: fixture(name) })));
  const answers = await Promise.all(
    NAMES.map(async (name, index) => {
      const engine = engines[index];
      assert.ok(engine);
      assert.ok(engine.info().name.endsWith(name));
      return answerAll(engine, name);
    }),
  );
  assert.deepEqual(answers, alone);
});

test('an engine that closes does not disturb another one on the same model', async (t) => {
  const model = fixture('shared-state');
  const [first, second] = [await startEngine(t, { model }), await startEngine(t, { model })];
  const before = await answerAll(second, 'shared-state');
  const [during] = await Promise.all([answerAll(second, 'shared-state'), first.close()]);
  assert.deepEqual([during, await answerAll(second, 'shared-state')], [before, before]);
});
