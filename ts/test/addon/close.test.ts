import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { loadEngine } from '../../src/engine/addon.ts';
import { until } from '../until.ts';
import { answersText, engineOptions, fixture, startEngine, textOf } from './model-folders.ts';
import { runProgram } from './program.ts';
import { manyQuestions, THREE_TYPES } from './requests.ts';

suite('close', () => {
  test('lets queued and running work finish, and refuses what comes later', async (t) => {
    const engine = await startEngine(t);
    const alone = answersText(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
    const first = engine.decide(Buffer.from(manyQuestions(20)));
    const queued = Array.from({ length: 20 }, () => engine.decide(Buffer.from(THREE_TYPES)));
    const closed = engine.close();
    await closed;
    assert.ok(textOf(await first));
    for (const reply of await Promise.all(queued)) assert.equal(answersText(textOf(reply)), alone);
    const { failure } = await engine.decide(Buffer.from(THREE_TYPES));
    assert.deepEqual([failure?.code, failure?.message], ['closing', 'the engine is closing']);
    assert.deepEqual(engine.queue(), { running: 0, waiting: 0, newestFirst: false });
  });

  test('refuses what comes while it waits', async (t) => {
    const engine = await startEngine(t);
    let isAnswered = false;
    const first = engine.decide(Buffer.from(manyQuestions(100)));
    void first.then(() => {
      isAnswered = true;
    });
    const closed = engine.close();
    // The engine closes on a thread of its own, which may need a moment; a request that comes before that is answered.
    const codes: string[] = [];
    while (codes.length === 0 && !isAnswered) {
      void engine.decide(Buffer.from(THREE_TYPES)).then(({ failure }) => {
        if (failure !== undefined) codes.push(failure.code);
      });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.deepEqual([codes[0], isAnswered], ['closing', false]);
    assert.ok(textOf(await first));
    await closed;
  });

  test('a second time is as good as once, and shutdown after it does nothing', async () => {
    const engine = await loadEngine(engineOptions({ model: fixture('marker') }));
    await Promise.all([engine.close(), engine.close()]);
    await engine.close();
    engine.shutdown();
  });

  test('gives the memory back: twelve models in a row take the room of one', async () => {
    // With many arenas, glibc keeps holes in each of them, which say nothing about the memory that is still in use.
    const { code, stdout } = await runProgram('load-again', { args: ['12'], env: { MALLOC_ARENA_MAX: '1' } });
    assert.equal(code, 0);
    const rssMiB: number[] = JSON.parse(stdout);
    const [warm, last] = [Math.max(...rssMiB.slice(0, 5)), Math.min(...rssMiB.slice(-5))];
    // One model needs about 80 MiB: if all twelve were kept, the last would come 500 MiB after the fifth.
    assert.ok(last - warm < 150, `MiB after each: ${stdout}`);
  });
});

test('shutdown stops running work at once', async (t) => {
  const engine = await startEngine(t);
  const replies = [1, 2, 3].map(() => engine.decide(Buffer.from(manyQuestions(1000))));
  await until(() => engine.queue().running > 0);
  const startMs = performance.now();
  engine.shutdown();
  const tookMs = performance.now() - startMs;
  const codes = (await Promise.all(replies)).map((reply) => reply.failure?.code);
  for (const code of codes) assert.match(String(code), /^(closing|cancelled)$/);
  // The answers to a thousand questions would take seconds.
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});
