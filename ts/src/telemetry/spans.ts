/** The spans of decision requests: one for the request, in its caller's trace, and one for each phase in it. */
import {
  createTraceState,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Timing } from '../engine/contract.ts';
import type { AnsweredRequest, ArrivedRequest, RequestSpan, RequestTracer } from './request-tracer.ts';
import { type TraceContext, traceOf } from './trace-context.ts';

/** The paths that get spans. Probes and the operator's pages would only be noise in a trace. */
const TRACED = /^\/(?:v1\/|playground$)/;

const NANOSECONDS = 1_000_000_000;

/** Returns a tracer of requests that makes its spans with `tracer`. */
export function requestTracer(tracer: Tracer): RequestTracer {
  return {
    start: (request) => (TRACED.test(request.path) ? startSpan(tracer, request) : undefined),
  };
}

/** The paths that have a name of their own in a trace; all others share one, so that callers cannot make names up. */
const ROUTES: ReadonlySet<string> = new Set([
  '/v1/systemone',
  '/v1/systemone/batch',
  '/v1/decisions',
  '/v1/models',
  '/v1/models/svc',
  '/playground',
]);

function startSpan(tracer: Tracer, { method, path, headers, startMs }: ArrivedRequest): RequestSpan {
  const parent = traceOf(headers);
  const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote(parent));
  const isRoute = ROUTES.has(path);
  const startTime = timeOf(startMs);
  const span = tracer.startSpan(
    isRoute ? `${method} ${path}` : method,
    {
      kind: SpanKind.SERVER,
      startTime,
      attributes: {
        'http.request.method': method,
        'url.scheme': 'http',
        'url.path': isRoute ? path : '/v1/…',
        ...(isRoute && { 'http.route': path }),
      },
    },
    context,
  );
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    trace: { traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0, traceState: parent?.traceState },
    end: (answered) => endSpan(tracer, { span, startTime, answered }),
  };
}

function remote({ traceId, spanId, isSampled, traceState }: TraceContext): SpanContext {
  return {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(traceState !== undefined && { traceState: createTraceState(traceState) }),
  };
}

interface EndedSpan {
  readonly span: Span;
  readonly startTime: HrTime;
  readonly answered: AnsweredRequest;
}

function endSpan(tracer: Tracer, { span, startTime, answered }: EndedSpan): void {
  const { id, status, code, questions, tokens, timing, readMs = 0 } = answered;
  if (span.isRecording()) {
    if (timing !== undefined) addPhases(tracer, { span, from: later(startTime, readMs), timing });
    span.setAttributes({
      'http.response.status_code': status,
      'svc.request_id': id,
      ...(code !== undefined && { 'error.type': code }),
      ...(questions !== undefined && { 'svc.questions': questions }),
      ...(tokens !== undefined && { 'svc.input_tokens': tokens }),
    });
    if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end(timeOf(performance.now()));
}

interface Phases {
  readonly span: Span;
  /** The beginning of the first phase. */
  readonly from: HrTime;
  readonly timing: Timing;
}

/**
 * Adds a span for each phase, one after the other from the time at which the body was read. Their durations are those
 * of `Server-Timing`.
 */
function addPhases(tracer: Tracer, { span, from, timing }: Phases): void {
  const context = trace.setSpan(ROOT_CONTEXT, span);
  let startTime = from;
  for (const [name, ms] of [
    ['encode', timing.encodeMs],
    ['wait', timing.waitMs],
    ['run', timing.runMs],
  ] as const) {
    const endTime = later(startTime, ms);
    tracer.startSpan(name, { startTime }, context).end(endTime);
    startTime = endTime;
  }
}

/** Returns the time of a moment that is given in milliseconds as `performance.now()` counts them. */
export function timeOf(ms: number): HrTime {
  const epochMs = performance.timeOrigin + ms;
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.floor((epochMs - seconds * 1000) * 1_000_000)];
}

/** Returns the time `ms` milliseconds later, exact to the nanosecond. */
export function later([seconds, nanoseconds]: HrTime, ms: number): HrTime {
  const sum = nanoseconds + Math.round(ms * 1_000_000);
  return [seconds + Math.floor(sum / NANOSECONDS), sum % NANOSECONDS];
}
