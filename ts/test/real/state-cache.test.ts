import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { fixture } from '../addon/model-folders.ts';
import { manyQuestions } from '../addon/requests.ts';
import { LiveServer } from './live-server.ts';

/**
 * The bytes that a full chunk of the tiny model takes: 16 tokens, 2 layers, keys and values, 2 heads of 4 floats of 4
 * bytes; then the overhead of the entry and of its 4 tensors.
 */
const CHUNK_BYTES = 16 * 2 * 2 * 2 * 4 * 4 + 192 + 4 * 576;

/** Returns a state of one full chunk: 14 words of one token each, between the special ones. */
const oneChunk = (letter: string) => Array<string>(14).fill(letter).join(' ');

interface StateCache {
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
  readonly entries: number;
  readonly bytes: number;
  readonly limit_bytes: number;
}

/**
 * Returns a server that keeps states of at most `limitBytes`, and functions that read its counts from `/stats` and
 * `/metrics`.
 */
async function start(t: TestContext, limitBytes: number) {
  const env = { SVC_ALLOW_NO_PASSWORD: '1', SVC_STATE_CACHE_BYTES: String(limitBytes) };
  const server = await LiveServer.start(t, { model: fixture('shared-state'), env });
  const ask = (state: string) => server.answer(manyQuestions(2, state));
  const stats = async () => JSON.parse((await server.get('/stats')).text).state_cache as StateCache;
  const metric = async (name: string) => {
    const { text } = await server.get('/metrics');
    return Number(new RegExp(`^svc_state_cache_${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  return { ask, stats, metric };
}

suite('the numbers of the kept states', () => {
  test('move when the same state is asked about again', async (t) => {
    const { ask, stats, metric } = await start(t, 10 * CHUNK_BYTES);
    const bound = { evictions: 0, limit_bytes: 10 * CHUNK_BYTES };
    assert.deepEqual(await stats(), { hits: 0, misses: 0, entries: 0, bytes: 0, ...bound });
    const first = await ask(oneChunk('a'));
    assert.deepEqual(await stats(), { hits: 0, misses: 1, entries: 1, bytes: CHUNK_BYTES, ...bound });
    const second = await ask(oneChunk('a'));
    assert.deepEqual(await stats(), { hits: 1, misses: 1, entries: 1, bytes: CHUNK_BYTES, ...bound });
    assert.deepEqual(JSON.parse(second).answers, JSON.parse(first).answers);
    assert.deepEqual(
      [await metric('hits_total'), await metric('misses_total'), await metric('entries'), await metric('bytes')],
      [1, 1, 1, CHUNK_BYTES],
    );
  });

  test('count what goes when the bound is small, and never pass the bound', async (t) => {
    const { ask, stats, metric } = await start(t, 2 * CHUNK_BYTES);
    for (const letter of ['a', 'b', 'c', 'd', 'e']) await ask(oneChunk(letter));
    const full = { entries: 2, bytes: 2 * CHUNK_BYTES, limit_bytes: 2 * CHUNK_BYTES };
    assert.deepEqual(await stats(), { hits: 0, misses: 5, evictions: 3, ...full });
    // The first state is gone, so it is prefilled again, and the older of the two kept states makes room for it.
    await ask(oneChunk('a'));
    assert.deepEqual(await stats(), { hits: 0, misses: 6, evictions: 4, ...full });
    assert.deepEqual([await metric('evictions_total'), await metric('limit_bytes')], [4, 2 * CHUNK_BYTES]);
  });

  test('say that nothing is kept when the bound is zero', async (t) => {
    const { ask, stats, metric } = await start(t, 0);
    for (let count = 0; count < 3; count += 1) await ask(oneChunk('a'));
    const { misses, ...rest } = await stats();
    assert.deepEqual(rest, { hits: 0, evictions: 0, entries: 0, bytes: 0, limit_bytes: 0 });
    assert.equal(misses, 3);
    assert.deepEqual([await metric('hits_total'), await metric('bytes'), await metric('limit_bytes')], [0, 0, 0]);
  });
});
