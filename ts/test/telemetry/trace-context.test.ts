import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { traceOf, traceResponse } from '../../src/telemetry/trace-context.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const place = { traceId: TRACE_ID, spanId: SPAN_ID };

suite('traceparent', () => {
  for (const [traceparent, isSampled] of [
    [`00-${TRACE_ID}-${SPAN_ID}-01`, true],
    [`00-${TRACE_ID}-${SPAN_ID}-00`, false],
    [`00-${TRACE_ID}-${SPAN_ID}-03`, true],
    [`00-${TRACE_ID}-${SPAN_ID}-fe`, false],
    [`01-${TRACE_ID}-${SPAN_ID}-01`, true],
    [`cc-${TRACE_ID}-${SPAN_ID}-01-what-a-later-version-adds`, true],
  ] as const) {
    test(`${traceparent} is read`, () => assert.deepEqual(traceOf({ traceparent }), { ...place, isSampled }));
  }

  for (const traceparent of [
    '',
    `00-${TRACE_ID}-${SPAN_ID}`,
    `00-${TRACE_ID}-${SPAN_ID}-01-more`,
    `00-${TRACE_ID}-${SPAN_ID}-01-`,
    `ff-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
    `00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`,
    ` 00-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${SPAN_ID}-0g`,
    `00-${TRACE_ID}-${SPAN_ID}-01, 00-${TRACE_ID}-${SPAN_ID}-01`,
    `01-${TRACE_ID}-${SPAN_ID}-01more`,
  ]) {
    test(`${JSON.stringify(traceparent)} is none`, () => assert.equal(traceOf({ traceparent }), undefined));
  }

  test('is written as it was read', () => {
    const hex = (length: number) =>
      fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`)).filter((digits) => /[^0]/.test(digits));
    fc.assert(
      fc.property(hex(32), hex(16), fc.constantFrom('00', '01'), (traceId, spanId, flags) => {
        const traceparent = `00-${traceId}-${spanId}-${flags}`;
        const trace = traceOf({ traceparent });
        assert.equal(trace && traceResponse(trace), traceparent);
      }),
    );
  });
});

suite('tracestate', () => {
  const traceparent = `00-${TRACE_ID}-${SPAN_ID}-01`;

  test('comes with its parent only, as it is', () => {
    const tracestate = 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7';
    assert.equal(traceOf({ traceparent, tracestate })?.traceState, tracestate);
    assert.equal(traceOf({ tracestate }), undefined);
  });

  test('is left out when it is too long', () => {
    assert.equal(traceOf({ traceparent, tracestate: `a=${'x'.repeat(1023)}` })?.traceState, undefined);
    assert.equal(traceOf({ traceparent, tracestate: `a=${'x'.repeat(1022)}` })?.traceState?.length, 1024);
  });
});
