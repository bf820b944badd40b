import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type HrTime, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { AnsweredRequest } from '../../src/telemetry/request-tracer.ts';
import { later, requestTracer, timeOf } from '../../src/telemetry/spans.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const HEADERS = { traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`, tracestate: 'congo=t61rcWkgMzE' };
const ANSWERED: AnsweredRequest = {
  id: 'request-1',
  status: 200,
  code: undefined,
  questions: 6,
  tokens: 40,
  timing: { encodeMs: 1.23, waitMs: 0, runMs: 5.67, totalMs: 7.1 },
  readMs: 0.2,
};

interface Traced {
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly answered?: Partial<AnsweredRequest>;
  readonly isOff?: boolean;
}

/** Traces one request with the official SDK, and returns its place in the trace and its spans by their names. */
function traced({ path = '/v1/systemone', headers = HEADERS, answered = {}, isOff = false }: Traced = {}) {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
    ...(isOff && { sampler: new AlwaysOffSampler() }),
  });
  const startMs = performance.now() - 20;
  const span = requestTracer(provider.getTracer('test')).start({ method: 'POST', path, headers, startMs });
  span?.end({ ...ANSWERED, ...answered });
  const spans = exporter.getFinishedSpans();
  return { trace: span?.trace, startMs, spans: new Map(spans.map((each) => [each.name, each] as const)) };
}

const nanoseconds = ([seconds, rest]: HrTime) => BigInt(seconds) * 1_000_000_000n + BigInt(rest);
const durationNs = ({ startTime, endTime }: ReadableSpan) => Number(nanoseconds(endTime) - nanoseconds(startTime));

suite('the spans of a request', () => {
  test("are in the caller's trace, the phases in the request", () => {
    const { spans, trace } = traced();
    assert.deepEqual([...spans.keys()], ['encode', 'wait', 'run', 'POST /v1/systemone']);
    const request = spans.get('POST /v1/systemone');
    assert.equal(request?.kind, SpanKind.SERVER);
    assert.deepEqual([request?.parentSpanContext?.spanId, request?.parentSpanContext?.isRemote], [SPAN_ID, true]);
    assert.equal(request?.spanContext().traceState?.serialize(), HEADERS.tracestate);
    assert.deepEqual(trace, {
      traceId: TRACE_ID,
      spanId: request?.spanContext().spanId,
      isSampled: true,
      traceState: HEADERS.tracestate,
    });
    for (const span of spans.values()) assert.equal(span.spanContext().traceId, TRACE_ID);
    for (const name of ['encode', 'wait', 'run']) {
      assert.equal(spans.get(name)?.parentSpanContext?.spanId, trace?.spanId);
    }
  });

  test('last as long as Server-Timing says, one after the other', () => {
    const { spans, startMs } = traced();
    const [encode, wait, run, request] = [...spans.values()] as [
      ReadableSpan,
      ReadableSpan,
      ReadableSpan,
      ReadableSpan,
    ];
    assert.deepEqual([encode, wait, run].map(durationNs), [1_230_000, 0, 5_670_000]);
    assert.deepEqual(request.startTime, timeOf(startMs));
    assert.deepEqual(encode.startTime, later(request.startTime, 0.2));
    assert.deepEqual([wait.startTime, run.startTime], [encode.endTime, wait.endTime]);
    assert.ok(nanoseconds(run.endTime) <= nanoseconds(request.endTime));
  });

  test('say how the request ended, without its text', () => {
    const { spans } = traced();
    const span = spans.get('POST /v1/systemone');
    assert.deepEqual(span?.attributes, {
      'http.request.method': 'POST',
      'url.scheme': 'http',
      'url.path': '/v1/systemone',
      'http.route': '/v1/systemone',
      'http.response.status_code': 200,
      'svc.request_id': 'request-1',
      'svc.questions': 6,
      'svc.input_tokens': 40,
    });
    assert.equal(span?.status.code, SpanStatusCode.UNSET);
  });

  for (const [status, code, isError] of [
    [400, 'unknown_type', false],
    [503, 'queue_full', true],
  ] as const) {
    test(`of a ${status} are ${isError ? '' : 'no '}errors of the server`, () => {
      const { spans } = traced({ answered: { status, code, timing: undefined } });
      assert.deepEqual([...spans.keys()], ['POST /v1/systemone']);
      const span = spans.get('POST /v1/systemone');
      assert.equal(span?.attributes['error.type'], code);
      assert.equal(span?.status.code, isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET);
    });
  }

  test('begin a trace where the caller names none', () => {
    const { spans, trace } = traced({ headers: {} });
    assert.equal(spans.get('POST /v1/systemone')?.parentSpanContext, undefined);
    assert.match(trace?.traceId ?? '', /^[\da-f]{32}$/);
    assert.notEqual(trace?.traceId, TRACE_ID);
  });

  test('are not kept when the caller or the sampler says so, but the trace goes on', () => {
    const unsampled = { traceparent: HEADERS.traceparent.replace(/01$/, '00') };
    for (const { spans, trace } of [traced({ headers: unsampled }), traced({ isOff: true })]) {
      assert.equal(spans.size, 0);
      assert.deepEqual([trace?.traceId, trace?.isSampled], [TRACE_ID, false]);
    }
  });

  test('have names that no caller can make up, and leave probes out', () => {
    for (const path of ['/health', '/readyz', '/metrics', '/', '/nowhere', '/playgrounds']) {
      assert.deepEqual([...traced({ path }).spans.keys()], [], path);
    }
    const { spans } = traced({ path: '/v1/made-up-by-a-caller', answered: { status: 404, timing: undefined } });
    assert.deepEqual([...spans.keys()], ['POST']);
    assert.equal(JSON.stringify(spans.get('POST')?.attributes).includes('made-up'), false);
  });
});

test('times go over the second', () => {
  assert.deepEqual(later([7, 999_999_999], 0.000001), [8, 0]);
  assert.deepEqual(later([7, 500_000_000], 2600.25), [10, 100_250_000]);
});
