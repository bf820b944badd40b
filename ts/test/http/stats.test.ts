import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { Check } from 'typebox/schema';
import { StatsSchema, type StatsSnapshot } from '../../src/schemas/stats.ts';
import { Stats } from '../../src/stats/stats.ts';
import { REPOSITORY } from '../addon/model-folders.ts';
import { REPLY } from '../fake-engine.ts';
import { type ServerUnderTest, startServer } from './server-under-test.ts';

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
    await get('/v1/models');
    await get('/v1/nothing');
    await get('/stats');
    await decide({ path: '/v1/systemone/' });
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

test('docs/metrics.md has a row for every field of /stats, in their order', () => {
  const text = readFileSync(join(REPOSITORY, 'docs', 'metrics.md'), 'utf8');
  const rows =
    text
      .split('## `/metrics`', 1)[0]
      ?.split('\n')
      .filter((line) => line.startsWith('| `')) ?? [];
  const named = rows.flatMap((row) => row.split('|')[1]?.match(/\w+/g) ?? []);
  assert.deepEqual(named, Object.keys(StatsSchema.properties));
});

suite('GET /stats', () => {
  async function snapshot({ get }: ServerUnderTest): Promise<StatsSnapshot> {
    const { status, headers, text } = await get('/stats');
    assert.deepEqual([status, headers['content-type']], [200, 'application/json; charset=utf-8']);
    const value: unknown = JSON.parse(text);
    assert.ok(Check(StatsSchema, value), text);
    return value as StatsSnapshot;
  }

  test('of a server that was never asked is all zeros', async (t) => {
    const server = await startServer(t);
    const { requests, queue, recent, per_question_type, confidence, series, device, api_key } = await snapshot(server);
    const times = { avg_ms: 0, p50_ms: 0, p95_ms: 0, p99_ms: 0, max_ms: 0 };
    assert.deepEqual(requests, { total: 0, errors: 0, questions: 0, input_tokens: 0, ...times });
    assert.deepEqual([queue, recent, device, api_key], [{ running: 0, waiting: 0 }, [], 'cpu', false]);
    assert.deepEqual(per_question_type, { choice: 0, score: 0, noul: 0 });
    assert.equal(confidence.noul.length, 10);
    assert.equal(series.length, 60);
  });

  test('counts and times what was decided', async (t) => {
    const server = await startServer(t);
    await server.decide();
    server.engine.answer = () => ({ failure: { code: 'invalid_json', message: 'invalid JSON at byte 0' } });
    await server.decide();
    const { requests, per_question_type, confidence, phases, recent, series } = await snapshot(server);
    const times = { avg_ms: 7.1, p50_ms: 7.1, p95_ms: 7.1, p99_ms: 7.1, max_ms: 7.1 };
    assert.deepEqual(requests, { total: 2, errors: 1, questions: 6, input_tokens: 40, ...times });
    assert.deepEqual(per_question_type, { choice: 1, score: 2, noul: 3 });
    assert.deepEqual(confidence, {
      choice: [0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
      score: [0, 1, 0, 0, 0, 0, 0, 0, 0, 1],
      noul: [0, 0, 1, 1, 0, 0, 0, 0, 0, 1],
    });
    assert.deepEqual(
      [phases.encode.p50_ms, phases.wait.p50_ms, phases.run.p50_ms, phases.total.p50_ms],
      // A wait of zero counts as the histogram's shortest time, 1 µs; the greatest wait, which is 0, limits the
      // percentile.
      [1.23, 0, 5.67, 7.1],
    );
    assert.deepEqual(
      recent.map(({ time: _, ms: __, ...rest }) => rest),
      [
        { questions: 0, input_tokens: 0, status: 400, error: 'invalid_json' },
        { questions: 6, input_tokens: 40, status: 200 },
      ],
    );
    assert.deepEqual([series.at(-1)?.requests, series.at(-1)?.errors, series.at(-1)?.run_ms], [2, 1, 5.67]);
    for (const { time } of [...recent, ...series]) assert.equal(new Date(time).toISOString(), time);
  });

  test('counts the decision requests that were refused before they were read, and does not time them', async (t) => {
    const key = 'k'.repeat(16);
    const server = await startServer(t, { apiKeys: [key] });
    const { decide: send, get, lifecycle } = server;
    const right = { Authorization: `Bearer ${key}` };
    const refused = [
      ...['/v1/systemone', '/v1/systemone/batch', '/v1/decisions'].flatMap((path) => [
        send({ method: 'POST', path }),
        send({ method: 'POST', path, headers: { Authorization: 'Bearer wrong' } }),
        send({ method: 'GET', path, headers: right }),
        send({ method: 'POST', path, headers: { ...right, Origin: 'https://evil.example' } }),
        send({ method: 'POST', path, headers: { ...right, Host: 'evil.example' } }),
      ]),
    ];
    const statuses = (await Promise.all(refused)).map(({ status }) => status);
    assert.deepEqual(statuses, Array(3).fill([401, 401, 405, 403, 403]).flat());
    // None of these requests is a decision.
    for (const path of ['/v1/models', '/v1/systemone/', '/nowhere', '/v1/systemone/batch/x']) await get(path);
    assert.equal((await server.decide({ headers: right })).status, 200);
    server.engine.answer = () => ({ failure: { code: 'invalid_json', message: 'invalid JSON at byte 0' } });
    assert.equal((await server.decide({ headers: right })).status, 400);
    const { requests, recent, series } = await snapshot(server);
    assert.deepEqual([requests.total, requests.errors, requests.avg_ms], [17, 16, 7.1]);
    assert.deepEqual([recent.length, series.at(-1)?.requests], [2, 2]);
    const metrics = (await get('/metrics')).text;
    assert.match(metrics, /^svc_requests_total 17$/m);
    assert.match(metrics, /^svc_request_errors_total 16$/m);
    lifecycle.advance('draining');
    assert.equal((await server.decide({ headers: right })).status, 503);
    assert.equal(server.stats.requests, 18);
  });

  test('says how much the engine has to do', async (t) => {
    const server = await startServer(t);
    server.engine.queue = () => ({ running: 1, waiting: 5, newestFirst: false });
    const { queue, series } = await snapshot(server);
    assert.deepEqual([queue, series.at(-1)?.waiting], [{ running: 1, waiting: 5 }, 5]);
  });

  test('has the health record, and says whether the key is on', async (t) => {
    const server = await startServer(t, { apiKeys: ['k'.repeat(16)] });
    const { model, device, api_key, version } = await snapshot(server);
    const health = JSON.parse((await server.get('/health')).text);
    assert.deepEqual(model, { ...health, exactness: 'exact' });
    assert.deepEqual([device, api_key], ['cpu', true]);
    assert.match(version, /^\d+\.\d+\.\d+/);
  });

  test('is there while no model is', async (t) => {
    const { device, model, queue, state_cache } = await snapshot(await startServer(t, { isLoading: true }));
    assert.deepEqual([device, model.status, queue], [null, 'loading', { running: 0, waiting: 0 }]);
    assert.deepEqual(new Set(Object.values(state_cache)), new Set([0]));
  });

  test('says how the kept states are doing', async (t) => {
    const { state_cache } = await snapshot(await startServer(t));
    const bytes = { bytes: 1_572_864, limit_bytes: 67_108_864 };
    assert.deepEqual(state_cache, { hits: 6, misses: 2, evictions: 1, entries: 1, ...bytes });
  });

  test('has no key but the three known types, whatever the engine counts', async (t) => {
    const server = await startServer(t);
    const counts = { ...REPLY.counts, 'evil"}': 1, __proto__: { x: 1 } };
    server.engine.answer = () => ({ ...REPLY, counts });
    await server.decide();
    const { per_question_type, confidence } = await snapshot(server);
    assert.deepEqual(Object.keys(per_question_type), ['choice', 'score', 'noul']);
    assert.deepEqual(Object.keys(confidence), ['choice', 'score', 'noul']);
  });
});
