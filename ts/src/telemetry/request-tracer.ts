/** Spans of requests, as the server sees them; `spans.ts` makes them with OpenTelemetry. */
import type { Timing } from '../engine/contract.ts';
import type { TraceContext, TraceHeaders } from './trace-context.ts';

/** A request that has arrived. */
export interface ArrivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: TraceHeaders;
  /** When it arrived, in milliseconds as `performance.now()` counts them. */
  readonly startMs: number;
}

/** A request that is answered. */
export interface AnsweredRequest {
  readonly id: string;
  readonly status: number;
  /** The stable code of its error, if it has one. */
  readonly code: string | undefined;
  readonly questions: number | undefined;
  readonly tokens: number | undefined;
  /** The time of its phases; absent for a request without a decision, and for a batch. */
  readonly timing: Timing | undefined;
  /** The milliseconds from its arrival to the beginning of the first phase. */
  readonly readMs: number | undefined;
}

/** The span of a request. */
export interface RequestSpan {
  readonly trace: TraceContext;
  end(answered: AnsweredRequest): void;
}

export interface RequestTracer {
  /** Begins the span of a request; undefined for a request that has none. */
  start(request: ArrivedRequest): RequestSpan | undefined;
}
