import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import type { AnsweredRequest, ArrivedRequest, RequestTracer } from '../../src/telemetry/request-tracer.ts';
import { type LogLine, type Options, type Sent, startServer } from './server-under-test.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const PARENT = `00-${TRACE_ID}-${SPAN_ID}-01`;

type TraceLine = LogLine & { readonly trace_id?: string; readonly span_id?: string };

/** Sends one request, and returns the `traceresponse` of its answer, its line of the log, and its status. */
async function traced(t: TestContext, sent: Sent, options: Options = {}) {
  const { decide, log } = await startServer(t, options);
  const {
    headers: { traceresponse: response },
    status,
  } = await decide(sent);
  await new Promise(setImmediate);
  const line = log.find(({ msg }) => msg === 'request') as TraceLine | undefined;
  return { response, line, status };
}

/** A tracer that notes the spans, all at the same place. */
class NotingTracer implements RequestTracer {
  readonly arrived: ArrivedRequest[] = [];
  readonly answered: AnsweredRequest[] = [];

  start(request: ArrivedRequest) {
    this.arrived.push(request);
    if (request.path === '/livez') return undefined;
    const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true };
    return { trace, end: (answered: AnsweredRequest) => void this.answered.push(answered) };
  }
}

suite('the trace of a request', () => {
  test("is the caller's in the answer and in the log", async (t) => {
    const { response, line } = await traced(t, { headers: { traceparent: PARENT, tracestate: 'a=1' } });
    assert.equal(response, PARENT);
    assert.deepEqual([line?.trace_id, line?.span_id], [TRACE_ID, SPAN_ID]);
  });

  test('is in refusals, and in routes that make no decision', async (t) => {
    const headers = { traceparent: PARENT.replace(/01$/, '00') };
    for (const sent of [
      { headers, body: '{' },
      { headers, path: '/livez', method: 'GET', body: '' },
    ]) {
      const { response, line, status } = await traced(t, sent);
      assert.notEqual(status, 500);
      assert.deepEqual([response, line?.trace_id], [headers.traceparent, TRACE_ID]);
    }
  });

  test('is nowhere without a caller that names one rightly', async (t) => {
    for (const headers of [{}, { traceparent: 'nonsense' }, { tracestate: 'a=1' }, { traceparent: [PARENT, PARENT] }]) {
      const { response, line, status } = await traced(t, { headers });
      assert.deepEqual([status, response, line?.trace_id, line?.span_id], [200, undefined, undefined, undefined]);
      assert.ok(line !== undefined && !('trace_id' in line));
    }
  });

  test('may be read by pages of other sites that may call the server', async (t) => {
    const origin = 'https://app.example';
    const { decide } = await startServer(t, { config: { corsOrigins: [origin] } });
    const { headers } = await decide({ headers: { Origin: origin } });
    assert.match(String(headers['access-control-expose-headers']), /\btraceresponse\b/);
  });
});

suite('the span of a request', () => {
  test('is in the answer and in the log, and ends with the times and numbers of the decision', async (t) => {
    const tracer = new NotingTracer();
    const { decide, log } = await startServer(t, { tracer });
    const { headers } = await decide({ headers: { traceparent: PARENT } });
    const { traceresponse } = headers;
    await new Promise(setImmediate);
    const [line] = log.filter(({ msg }) => msg === 'request') as TraceLine[];
    assert.equal(traceresponse, `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`);
    assert.deepEqual([line?.trace_id, line?.span_id], ['a'.repeat(32), 'b'.repeat(16)]);
    const [
      {
        method,
        path,
        headers: { traceparent },
      },
    ] = tracer.arrived as [ArrivedRequest];
    assert.deepEqual([method, path, traceparent], ['POST', '/v1/systemone', PARENT]);
    const [{ id, status, code, questions, tokens, timing, readMs }] = tracer.answered as [AnsweredRequest];
    assert.deepEqual([id, status, code, questions, tokens], [headers['x-request-id'], 200, undefined, 6, 40]);
    assert.deepEqual([timing?.encodeMs, timing?.waitMs, timing?.runMs], [1.23, 0, 5.67]);
    assert.ok(readMs !== undefined && readMs >= 0);
  });

  test('ends with the code of a refusal', async (t) => {
    const tracer = new NotingTracer();
    const { decide } = await startServer(t, { tracer, apiKeys: ['key'] });
    await decide();
    await new Promise(setImmediate);
    assert.deepEqual(
      tracer.answered.map(({ status, code, timing }) => [status, code, timing]),
      [[401, 'unauthorized', undefined]],
    );
  });

  test('may be missing', async (t) => {
    const tracer = new NotingTracer();
    const { get, log } = await startServer(t, { tracer });
    const {
      headers: { traceresponse },
    } = await get('/livez');
    await new Promise(setImmediate);
    assert.equal(traceresponse, undefined);
    assert.ok(!('trace_id' in (log.find(({ msg }) => msg === 'request') ?? {})));
  });
});
