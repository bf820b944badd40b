import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import { EngineSlot } from '../../src/model/slot.ts';
import { Metrics } from '../../src/stats/metrics.ts';
import { Stats } from '../../src/stats/stats.ts';
import { prometheusProducer } from '../../src/telemetry/prometheus-producer.ts';
import { FakeEngine, REPLY } from '../fake-engine.ts';

/** Returns the metrics of a server with some decisions: by their names as OpenTelemetry has them, and as text. */
async function produced() {
  const slot = new EngineSlot();
  slot.loaded(new FakeEngine(), { source: '/models/fake' });
  const stats = new Stats({ waiting: () => 0 });
  const metrics = new Metrics({ stats, slot, lostLines: () => 3 });
  for (const runMs of [0.2, 3, 3, 700, 90_000]) {
    const timing = { ...REPLY.timing, runMs };
    stats.record({ timeMs: Date.now(), ms: 7, timing, counts: REPLY.counts });
    metrics.observe(timing);
  }
  for (const status of [200, 200, 503]) metrics.countResponse(status);
  const producer = prometheusProducer({ metrics: () => metrics.known(), scope: { name: 'test' } });
  const { resourceMetrics, errors } = await producer.collect();
  assert.deepEqual(errors, []);
  const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  return { byName: new Map(all.map((data) => [data.descriptor.name, data])), text: await metrics.text() };
}

const points = (data: MetricData | undefined) =>
  (data?.dataPoints ?? []).map(({ attributes, value }) => [attributes, value] as const);

suite('the metrics for OpenTelemetry', () => {
  test('are all those of /metrics', async () => {
    const { byName, text } = await produced();
    const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    assert.ok(names.length > 30);
    assert.deepEqual([...byName.keys()].sort(), names.sort());
  });

  test('count since the start of the process', async () => {
    const { byName } = await produced();
    const requests = byName.get('svc_requests_total');
    assert.equal(requests?.dataPointType, DataPointType.SUM);
    assert.ok(requests?.dataPointType === DataPointType.SUM && requests.isMonotonic);
    assert.deepEqual(points(requests), [[{}, 5]]);
    assert.deepEqual(points(byName.get('svc_responses_total')), [
      [{ status: 200 }, 2],
      [{ status: 503 }, 1],
    ]);
    const [point] = requests.dataPoints;
    assert.ok(Math.abs((point?.startTime[0] ?? 0) - performance.timeOrigin / 1000) < 2);
    assert.ok((point?.endTime[0] ?? 0) >= (point?.startTime[0] ?? 0));
  });

  test('measure, with the labels of Prometheus and units', async () => {
    const { byName } = await produced();
    assert.deepEqual(points(byName.get('svc_log_lines_lost_total')), [[{}, 3]]);
    const info = byName.get('svc_model_info');
    assert.equal(info?.dataPointType, DataPointType.GAUGE);
    const { name } = points(info)[0]?.[0] ?? {};
    assert.equal(name, 'fake');
    const units = ['svc_state_cache_bytes', 'svc_request_duration_seconds', 'svc_latency_ms_p99', 'svc_queue_waiting'];
    assert.deepEqual(
      units.map((name) => byName.get(name)?.descriptor.unit),
      ['By', 's', 'ms', ''],
    );
  });

  test('have each bucket of a histogram by itself', async () => {
    const { byName, text } = await produced();
    const duration = byName.get('svc_request_duration_seconds');
    assert.ok(duration?.dataPointType === DataPointType.HISTOGRAM);
    const runs = duration.dataPoints.find(({ attributes: { phase } }) => phase === 'run')?.value;
    assert.equal(duration.dataPoints.length, 4);
    assert.equal(runs?.count, 5);
    assert.equal(runs.sum, 90.7062);
    const { boundaries, counts } = runs.buckets;
    assert.equal(counts.length, boundaries.length + 1);
    const filled = counts.flatMap((count, index) => (count === 0 ? [] : [[boundaries[index], count]]));
    assert.deepEqual(filled, [
      [0.0005, 1],
      [0.005, 2],
      [1, 1],
      [undefined, 1],
    ]);
    assert.match(text, /svc_request_duration_seconds_bucket\{le="0.005",phase="run"\} 3/);
  });
});
