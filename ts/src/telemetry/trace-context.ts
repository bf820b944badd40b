/** The trace that a request belongs to, as its caller names it (W3C Trace Context, level 2). */

/** The headers in which a caller names a trace, and in which an answer names it. */
export const TRACE_HEADERS = { parent: 'traceparent', state: 'tracestate', response: 'traceresponse' } as const;

/** A place in a trace. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** The span: 16 lower-case hexadecimal digits. */
  readonly spanId: string;
  /** Whether the spans of the trace are kept. */
  readonly isSampled: boolean;
  /** The state that vendors keep in the trace, as it came. */
  readonly traceState?: string | undefined;
}

/** The headers of a request, the values of one name joined. */
export type TraceHeaders = Readonly<Partial<Record<string, string | string[]>>>;

const PARENT =
  /^(?<version>[\da-f]{2})-(?<traceId>[\da-f]{32})-(?<spanId>[\da-f]{16})-(?<flags>[\da-f]{2})(?<rest>-.*)?$/;
const ZEROS = /^0+$/;

/** Flags that say that the trace is kept. */
const SAMPLED = 0x01;

/** The longest state that is taken over; the standard wants at least 512 characters. */
const MAX_STATE_CHARS = 1024;

/**
 * Returns the place in a trace that the caller of a request names; undefined if it names none, or not as the standard
 * wants it. A later version of the standard is read as far as it is known.
 */
export function traceOf(headers: TraceHeaders): TraceContext | undefined {
  const { [TRACE_HEADERS.parent]: parent, [TRACE_HEADERS.state]: state } = headers;
  if (typeof parent !== 'string') return undefined;
  const { version = 'ff', traceId = '', spanId = '', flags = '', rest } = PARENT.exec(parent)?.groups ?? {};
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  const isKept = typeof state === 'string' && state.length <= MAX_STATE_CHARS;
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
    ...(isKept && { traceState: state }),
  };
}

/** Returns the value of `traceresponse`, which names the place in the trace to the caller. */
export function traceResponse({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
