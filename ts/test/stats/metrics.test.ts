import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { FakeEngine, untilCancelled } from '../fake-engine.ts';
import { type ServerUnderTest, startServer, Wire } from '../http/server-under-test.ts';
import { until } from '../until.ts';

const GRAFANA = join(REPOSITORY, 'deploy', 'grafana');

/** One sample of the text format: its name, the text of its labels, and its value. */
interface Sample {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

interface Exposition {
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
}

async function metrics({ get }: Pick<ServerUnderTest, 'get'>): Promise<Exposition> {
  const { status, headers, text } = await get('/metrics');
  assert.deepEqual([status, headers['content-type']], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type] as const);
  const samples = [...text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => {
    return { name, labels, value: Number(value) };
  });
  return { types: new Map(types), samples };
}

function value({ samples }: Exposition, name: string, labels = ''): number | undefined {
  return samples.find((sample) => sample.name === name && sample.labels === labels)?.value;
}

const OWN = {
  svc_requests_total: 'counter',
  svc_request_errors_total: 'counter',
  svc_questions_total: 'counter',
  svc_input_tokens_total: 'counter',
  svc_latency_ms_avg: 'gauge',
  svc_latency_ms_p50: 'gauge',
  svc_latency_ms_p95: 'gauge',
  svc_latency_ms_p99: 'gauge',
  svc_latency_ms_max: 'gauge',
  svc_queue_running: 'gauge',
  svc_queue_waiting: 'gauge',
  svc_queue_newest_first: 'gauge',
  svc_state_cache_hits_total: 'counter',
  svc_state_cache_misses_total: 'counter',
  svc_state_cache_evictions_total: 'counter',
  svc_state_cache_entries: 'gauge',
  svc_state_cache_bytes: 'gauge',
  svc_state_cache_limit_bytes: 'gauge',
  svc_model_info: 'gauge',
  svc_model_reload_failed: 'gauge',
  svc_log_lines_lost_total: 'counter',
  svc_responses_total: 'counter',
  svc_request_duration_seconds: 'histogram',
};

suite('GET /metrics', () => {
  test('has the metrics that are promised, each of its type, and those of the process', async (t) => {
    const { types } = await metrics(await startServer(t));
    const own = [...types].filter(([name]) => name.startsWith('svc_'));
    assert.deepEqual(Object.fromEntries(own), OWN);
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds']) {
      assert.ok(types.has(name), name);
    }
  });

  test('starts with every count at zero', async (t) => {
    const exposition = await metrics(await startServer(t, { isLoading: true }));
    for (const [name, type] of Object.entries(OWN)) {
      if (type === 'counter' && name !== 'svc_responses_total') assert.equal(value(exposition, name), 0, name);
    }
    for (const phase of ['encode', 'wait', 'run', 'total']) {
      assert.equal(value(exposition, 'svc_request_duration_seconds_count', `phase="${phase}"`), 0);
    }
  });

  test('counts and times what was decided, the same at every look', async (t) => {
    const server = await startServer(t);
    await server.decide();
    await server.decide();
    server.engine.answer = () => ({ failure: { code: 'queue_full', message: 'full' } });
    await server.decide();
    await metrics(server);
    const exposition = await metrics(server);
    for (const [name, expected] of [
      ['svc_requests_total', 3],
      ['svc_request_errors_total', 1],
      ['svc_questions_total', 12],
      ['svc_input_tokens_total', 80],
      ['svc_latency_ms_avg', 7.1],
      ['svc_latency_ms_p50', 7.1],
      ['svc_latency_ms_p95', 7.1],
      ['svc_latency_ms_p99', 7.1],
      ['svc_latency_ms_max', 7.1],
    ] as const) {
      assert.equal(value(exposition, name), expected, name);
    }
    for (const [phase, seconds] of [
      ['encode', 0.00246],
      ['wait', 0],
      ['run', 0.01134],
      ['total', 0.0142],
    ] as const) {
      assert.equal(value(exposition, 'svc_request_duration_seconds_count', `phase="${phase}"`), 2);
      const sum = value(exposition, 'svc_request_duration_seconds_sum', `phase="${phase}"`) ?? Number.NaN;
      assert.ok(Math.abs(sum - seconds) < 1e-9, `${phase}: ${sum}`);
    }
    assert.equal(value(exposition, 'svc_request_duration_seconds_bucket', 'le="0.005",phase="run"'), 0);
    assert.equal(value(exposition, 'svc_request_duration_seconds_bucket', 'le="0.01",phase="run"'), 2);
  });

  test('counts the answers of all routes by status', async (t) => {
    const server = await startServer(t, { apiKeys: ['k'.repeat(16)] });
    await server.decide();
    await server.get('/nowhere');
    await server.get('/health');
    await server.get('/v1/systemone');
    const exposition = await metrics(server);
    for (const status of [401, 404, 200, 405]) {
      assert.equal(value(exposition, 'svc_responses_total', `status="${status}"`), 1, String(status));
    }
  });

  test('counts what never became a request, and callers who have gone', async (t) => {
    const server = await startServer(t);
    const wire = await Wire.open(t, server.port);
    wire.send('NONSENSE\r\n\r\n');
    await wire.ends();
    server.engine.answer = untilCancelled;
    const caller = await Wire.open(t, server.port);
    caller.send(`POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`);
    await server.engine.called();
    caller.socket.destroy();
    await until(() => server.stats.requests === 1);
    const exposition = await metrics(server);
    assert.equal(value(exposition, 'svc_responses_total', 'status="400"'), 1);
    assert.equal(value(exposition, 'svc_responses_total', 'status="499"'), 1);
    assert.equal(value(exposition, 'svc_request_errors_total'), 1);
  });

  test('says which model is loaded and how many requests wait for it', async (t) => {
    const server = await startServer(t);
    server.engine.queue = () => ({ running: 1, waiting: 5, newestFirst: true });
    const exposition = await metrics(server);
    assert.equal(value(exposition, 'svc_queue_waiting'), 5);
    assert.equal(value(exposition, 'svc_queue_newest_first'), 1);
    const labels = `name="fake",version="1.2.3",sha256="${'ab'.repeat(32)}",device="cpu",exactness="exact"`;
    assert.equal(value(exposition, 'svc_model_info', labels), 1);
    assert.equal(value(exposition, 'svc_model_reload_failed'), 0);
    server.slot.failed('bad_model');
    assert.equal(value(await metrics(server), 'svc_model_reload_failed'), 1);
    server.slot.loaded(server.engine, { source: '/models/fake' });
    assert.equal(value(await metrics(server), 'svc_model_reload_failed'), 0);
    const loading = await metrics(await startServer(t, { isLoading: true }));
    assert.ok(!loading.samples.some(({ name }) => name === 'svc_model_info'));
    assert.equal(value(loading, 'svc_queue_waiting'), 0);
  });

  test('says nothing any more of a model that was replaced', async (t) => {
    const server = await startServer(t);
    await metrics(server);
    server.slot.loaded(new FakeEngine({ version: '2', sha256: 'cd'.repeat(32) }), { source: '/models/fake' });
    const { samples } = await metrics(server);
    const labels = `name="fake",version="2",sha256="${'cd'.repeat(32)}",device="cpu",exactness="exact"`;
    assert.deepEqual(
      samples.filter(({ name }) => name === 'svc_model_info'),
      [{ name: 'svc_model_info', labels, value: 1 }],
    );
  });

  test('has no failed reload while no model was ever loaded', async (t) => {
    const server = await startServer(t, { isLoading: true });
    server.slot.failed('bad_model');
    assert.equal(value(await metrics(server), 'svc_model_reload_failed'), 0);
  });

  test('says how the kept states are doing, the same at every look, and nothing of a model that has gone', async (t) => {
    const server = await startServer(t);
    const shown = async () => {
      const { samples } = await metrics(server);
      const own = samples.filter(({ name }) => name.startsWith('svc_state_cache_'));
      return Object.fromEntries(own.map((sample) => [sample.name.slice('svc_state_cache_'.length), sample.value]));
    };
    const counts = { hits_total: 6, misses_total: 2, evictions_total: 1 };
    const kept = { ...counts, entries: 1, bytes: 1_572_864, limit_bytes: 67_108_864 };
    assert.deepEqual([await shown(), await shown()], [kept, kept]);
    const newer = new FakeEngine();
    newer.cache = () => ({ hits: 0, misses: 3, evictions: 0, entries: 3, bytes: 30, limitBytes: 100 });
    server.slot.loaded(newer, { source: '/models/newer' });
    const none = { hits_total: 0, misses_total: 3, evictions_total: 0 };
    assert.deepEqual(await shown(), { ...none, entries: 3, bytes: 30, limit_bytes: 100 });
  });

  test('takes no label from outside: not a path, a method, a header or a question type', async (t) => {
    const server = await startServer(t);
    await server.decide();
    await server.get('/health');
    await server.get('/nowhere');
    const labels = async () => {
      const { samples } = await metrics(server);
      return new Set(
        samples.filter(({ name }) => name.startsWith('svc_')).map((sample) => sample.name + sample.labels),
      );
    };
    const before = await labels();
    server.engine.answer = () => ({ failure: { code: 'unknown_type', message: 'q: unknown type "evil"' } });
    const evil = 'evil"} 1\nsvc_evil 1';
    await server.decide({ body: JSON.stringify({ state: evil, questions: { [evil]: { type: evil } } }) });
    for (let i = 0; i < 50; i += 1) {
      await server.get(`/evil/${i}?password=${i}`, { 'x-request-id': `evil-${i}`, 'User-Agent': `evil ${i}` });
    }
    const after = await labels();
    after.delete('svc_responses_totalstatus="400"');
    assert.deepEqual(after, before);
  });

  test('of one server knows nothing of another in the same process', async (t) => {
    const [first, second] = [await startServer(t), await startServer(t)];
    await first.decide();
    assert.equal(value(await metrics(first), 'svc_requests_total'), 1);
    assert.equal(value(await metrics(second), 'svc_requests_total'), 0);
  });
});

test('docs/metrics.md has a row for every metric of the server, and for no other', () => {
  const text = readFileSync(join(REPOSITORY, 'docs', 'metrics.md'), 'utf8');
  const rows = text.split('\n').filter((line) => line.startsWith('| `svc_'));
  const named = rows.flatMap((row) => {
    const [, names = '', type = ''] = row.split('|');
    return (names.match(/svc_\w+/g) ?? []).map((name) => [name, type.trim()]);
  });
  assert.deepEqual(Object.fromEntries(named), OWN);
  assert.equal(named.length, Object.keys(OWN).length);
});

suite('deploy/grafana', () => {
  /** Returns every metric that an expression of one of the files names. */
  function namedMetrics(file: string): Set<string> {
    const text = readFileSync(join(GRAFANA, file), 'utf8');
    return new Set(text.match(/\b(?:svc|process|nodejs)_[a-z0-9_]+/g));
  }

  const files = readdirSync(GRAFANA).filter((name) => /\.(json|ya?ml)$/.test(name));

  test('has a dashboard and alert rules', () => {
    assert.ok(files.includes('dashboard.json') && files.includes('alerts.yml'), String(files));
  });

  for (const file of files.filter((name) => name !== 'prometheus.yml')) {
    test(`${file} names metrics that exist, and some of them`, async (t) => {
      const server = await startServer(t);
      await server.decide();
      const { samples } = await metrics(server);
      const existing = new Set(samples.map(({ name }) => name));
      const named = namedMetrics(file);
      assert.ok(named.size >= 4);
      assert.deepEqual(
        [...named].filter((name) => !existing.has(name)),
        [],
      );
    });
  }

  test('dashboard.json has a panel for every metric of the server', () => {
    const { panels } = JSON.parse(readFileSync(join(GRAFANA, 'dashboard.json'), 'utf8'));
    const shown = new Set<string>(
      panels.flatMap(({ targets = [] }: { targets?: readonly { expr: string }[] }) =>
        targets.flatMap(({ expr }) => expr.match(/\bsvc_[a-z0-9_]+/g) ?? []),
      ),
    );
    const isShown = (name: string) =>
      OWN[name as keyof typeof OWN] === 'histogram'
        ? ['_bucket', '_sum', '_count'].some((part) => shown.has(name + part))
        : shown.has(name);
    assert.deepEqual(
      Object.keys(OWN).filter((name) => !isShown(name)),
      [],
    );
  });
});
