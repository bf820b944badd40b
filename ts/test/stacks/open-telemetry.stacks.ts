import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { docBlocks } from '../doc-blocks.ts';
import { freePort } from '../free-port.ts';
import { ProcessOutput } from '../process-output.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { collectorProgram } from './environments.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const DECISION = JSON.stringify({
  state: 'I was charged twice.',
  questions: { refund: { type: 'noul', instructions: 'Does the customer want money back?' } },
});

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

interface Metric {
  readonly name: string;
  readonly sum?: { readonly dataPoints: readonly { readonly asDouble?: number }[] };
  readonly histogram?: { readonly dataPoints: readonly { readonly count: string }[] };
}

/** A collector with the configuration of docs/stacks/opentelemetry.md. */
class Collector {
  readonly url: string;
  readonly #file: string;

  private constructor(url: string, file: string) {
    this.url = url;
    this.#file = file;
  }

  static async start(t: TestContext): Promise<Collector> {
    const folder = temporaryFolder(t);
    const address = `127.0.0.1:${await freePort()}`;
    const config = docBlocks('stacks/opentelemetry.md').find(({ language }) => language === 'yaml')?.text ?? '';
    writeFileSync(join(folder, 'collector.yaml'), config.replace('127.0.0.1:4318', address));
    const child = spawn(collectorProgram(), ['--config', 'collector.yaml'], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = new ProcessOutput(child);
    t.after(async () => {
      child.kill('SIGTERM');
      await output.finished;
    });
    await output.logged(/Everything is ready/);
    return new Collector(`http://${address}`, join(folder, 'telemetry.jsonl'));
  }

  /** Returns all values of the member `name`, however deep, of what has arrived. */
  all<Value>(name: string): Value[] {
    if (!existsSync(this.#file)) return [];
    const found: Value[] = [];
    // The last line may be half written.
    const lines = readFileSync(this.#file, 'utf8').split('\n').slice(0, -1);
    for (const line of lines) {
      JSON.parse(line, (key, value) => {
        if (key === name) found.push(...value);
        return value;
      });
    }
    return found;
  }
}

const nanoseconds = ({ startTimeUnixNano, endTimeUnixNano }: Span) =>
  Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano));

test('a collector gets the spans of a request, which last as Server-Timing says, and the metrics', async (t) => {
  const collector = await Collector.start(t);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' };
  const server = await LiveServer.start(t, { env });
  const headers = { traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`, tracestate: 'congo=t61rcWkgMzE' };
  const { headers: answered, status } = await server.decide(DECISION, { headers });
  const { traceresponse, 'server-timing': timing = '' } = answered;
  assert.equal(status, 200);
  while (collector.all<Span>('spans').length < 4) await sleep(50);
  const spans = new Map(collector.all<Span>('spans').map((span) => [span.name, span] as const));
  assert.deepEqual([...spans.keys()].sort(), ['POST /v1/systemone', 'encode', 'run', 'wait']);

  const request = spans.get('POST /v1/systemone');
  assert.deepEqual(
    [request?.traceId, request?.parentSpanId, request?.traceState],
    [TRACE_ID, SPAN_ID, headers.tracestate],
  );
  assert.equal(traceresponse, `00-${TRACE_ID}-${request?.spanId}-01`);
  t.diagnostic(String(timing));
  for (const [, name = '', ms] of String(timing).matchAll(/(encode|wait|run);dur=([\d.]+)/g)) {
    const span = spans.get(name) ?? assert.fail(name);
    assert.deepEqual([span.traceId, span.parentSpanId], [TRACE_ID, request?.spanId]);
    assert.equal(nanoseconds(span), Math.round(Number(ms) * 1e6), name);
  }

  server.process.signal('SIGTERM');
  assert.equal((await server.process.finished).code, 0);
  while (collector.all<Metric>('metrics').length === 0) await sleep(50);
  const metrics = new Map(collector.all<Metric>('metrics').map((metric) => [metric.name, metric] as const));
  assert.equal(metrics.get('svc_requests_total')?.sum?.dataPoints[0]?.asDouble, 1);
  assert.deepEqual(
    metrics.get('svc_request_duration_seconds')?.histogram?.dataPoints.map(({ count }) => count),
    ['1', '1', '1', '1'],
  );
});
