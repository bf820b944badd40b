import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Stats } from '../../src/stats.ts';
import { startServer } from './server-under-test.ts';

suite('the statistics', () => {
  test('start empty', () => {
    assert.deepEqual(new Stats().recent(), []);
  });

  test('count an answered decision by what it was made of', async (t) => {
    const { decide, stats } = await startServer(t);
    await decide();
    const { requests, errors, questions, inputTokens, questionsByType } = stats;
    assert.deepEqual(
      { requests, errors, questions, inputTokens },
      { requests: 1, errors: 0, questions: 6, inputTokens: 40 },
    );
    assert.deepEqual({ ...questionsByType }, { choice: 1, score: 2, noul: 3 });
    const [latest] = stats.recent();
    assert.ok(Math.abs(Date.now() - (latest?.timeMs ?? 0)) < 5000);
    assert.deepEqual({ ...latest, timeMs: 0 }, { timeMs: 0, ms: 7.1, questions: 6, inputTokens: 40, status: 200 });
  });

  test('count a refused decision as an error, with its status and code', async (t) => {
    const { engine, decide, stats } = await startServer(t);
    engine.answer = () => ({ failure: { code: 'queue_full', message: 'full' } });
    await decide();
    await decide({ body: 'a'.repeat(2000) });
    engine.answer = () => Promise.reject(new Error());
    await decide();
    assert.deepEqual(
      stats.recent().map(({ status, error, questions }) => ({ status, error, questions })),
      [
        { status: 500, error: 'internal', questions: 0 },
        { status: 413, error: 'body_too_large', questions: 0 },
        { status: 503, error: 'queue_full', questions: 0 },
      ],
    );
    assert.deepEqual([stats.requests, stats.errors], [3, 3]);
  });

  test('leave out what is no decision', async (t) => {
    const { get, decide, stats } = await startServer(t, { apiKeys: ['key'] });
    await get('/health');
    await get('/v1/systemone');
    await decide();
    assert.equal(stats.requests, 0);
  });

  test('keep the newest 200 requests, newest first, however many there were', () => {
    const stats = new Stats();
    for (let i = 0; i < 450; i += 1) stats.record({ timeMs: i, ms: 1 });
    const times = stats.recent().map(({ timeMs }) => timeMs);
    assert.deepEqual(
      times,
      Array.from({ length: 200 }, (_, i) => 449 - i),
    );
    assert.equal(stats.requests, 450);
  });
});
