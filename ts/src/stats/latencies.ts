/** The durations of the decisions of the last five minutes. Their memory is bounded and does not grow with the load. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Timing } from '../engine/contract.ts';
import { PHASES } from '../schemas/names.ts';

type Phase = (typeof PHASES)[number];

/** One value for each phase. */
export type PerPhase<Value> = Readonly<Record<Phase, Value>>;

export interface Percentiles {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

export interface Latency extends Percentiles {
  readonly avgMs: number;
  readonly maxMs: number;
}

/** The decisions in one bucket of time. */
export interface Interval extends Percentiles {
  /** When the bucket began, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly requests: number;
  readonly errors: number;
  /** The average durations of the phases. */
  readonly encodeMs: number;
  readonly waitMs: number;
  readonly runMs: number;
  /** Requests that waited for the model when the bucket ended. */
  readonly waiting: number;
}

export interface LatenciesOptions {
  /** Returns monotonic milliseconds, which do not change when the clock is set. */
  readonly now?: () => number;
  /** Returns how many requests wait for the model. */
  readonly waiting?: () => number;
}

const BUCKET_MS = 5000;
const BUCKETS = 60;

/**
 * The range of the histograms, in microseconds. Two digits make a step of at most 1/128 of a value. A duration of more
 * than an hour counts as an hour.
 */
const RANGE = { lowest: 1, highest: 3_600_000_000, figures: 2 };

type Histograms = PerPhase<RecordableHistogram>;

/** The counts of five seconds. */
interface Bucket {
  requests: number;
  errors: number;
  waiting: number;
  maxMs: Record<Phase, number>;
  sumMs: Record<Phase, number>;
  /** The histograms, made when there is something to count, since they are large, and then kept. */
  histograms: Histograms | undefined;
  /** The percentiles, known once they are asked for; a bucket that is over never changes. */
  percentiles: Percentiles | undefined;
}

export class Latencies {
  readonly #now: () => number;
  readonly #waiting: () => number;
  readonly #startMs: number;
  /** The buckets: number `n` since the start is at index `n` modulo their count. */
  readonly #buckets = Array.from({ length: BUCKETS }, emptyBucket);
  #number = 0;
  /** The histograms of all buckets together. */
  readonly #whole = emptyHistograms();
  /** Whether `#whole` still counts decisions that are older than all buckets. */
  #isStale = false;

  constructor({ now = () => performance.now(), waiting = () => 0 }: LatenciesOptions = {}) {
    this.#now = now;
    this.#waiting = waiting;
    this.#startMs = now();
  }

  /** Counts one decision. Without `timing` the decision got no answer, and its duration has no meaning. */
  record(timing: Timing | undefined): void {
    const bucket = this.#current();
    bucket.requests += 1;
    bucket.percentiles = undefined;
    if (timing === undefined) {
      bucket.errors += 1;
      return;
    }
    bucket.histograms ??= emptyHistograms();
    for (const phase of PHASES) {
      const ms = timing[`${phase}Ms`];
      const us = Math.min(Math.max(Math.round(ms * 1000), RANGE.lowest), RANGE.highest);
      bucket.maxMs[phase] = Math.max(bucket.maxMs[phase], ms);
      bucket.sumMs[phase] += ms;
      bucket.histograms[phase].record(us);
      this.#whole[phase].record(us);
    }
  }

  /** Returns how long the answered decisions took; zeros when there were none. */
  latency(): Latency {
    const { total } = this.#fresh();
    const sumMs = this.#buckets.reduce((sum, bucket) => sum + bucket.sumMs.total, 0);
    const maxMs = this.#maxMs('total');
    return { avgMs: rounded(sumMs / (total.count || 1)), ...percentiles(total, maxMs), maxMs };
  }

  /** Returns how long each phase of the answered decisions took. */
  phases(): PerPhase<Percentiles> {
    return perPhase((phase) => percentiles(this.#fresh()[phase], this.#maxMs(phase)));
  }

  /** Returns the intervals, oldest first; the last one is not over. Intervals before the start are empty. */
  series(): Interval[] {
    const current = this.#current();
    current.waiting = this.#waiting();
    const currentMs = Date.now() - ((this.#now() - this.#startMs) % BUCKET_MS);
    return this.#buckets.map((_, index) => {
      const age = BUCKETS - 1 - index;
      return interval(this.#bucket(this.#number - age), currentMs - age * BUCKET_MS);
    });
  }

  #maxMs(phase: Phase): number {
    return Math.max(...this.#buckets.map(({ maxMs }) => maxMs[phase]));
  }

  #bucket(number: number): Bucket {
    return this.#buckets[(number + BUCKETS) % BUCKETS] as Bucket;
  }

  /** Returns the current bucket, and empties the buckets that are used again since the last call. */
  #current(): Bucket {
    const number = Math.floor((this.#now() - this.#startMs) / BUCKET_MS);
    if (number > this.#number) this.#advance(number);
    return this.#bucket(this.#number);
  }

  /**
   * Goes on to the bucket `number`. A bucket is ended by the first call after it: nothing has happened since, so the
   * requests that wait now also waited when it ended.
   */
  #advance(number: number): void {
    const waiting = this.#waiting();
    this.#bucket(this.#number).waiting = waiting;
    const first = Math.max(this.#number + 1, number - BUCKETS + 1);
    this.#number = number;
    for (let next = first; next <= number; next += 1) {
      const bucket = this.#bucket(next);
      this.#isStale ||= bucket.requests > 0;
      clear(bucket);
      if (next < number) bucket.waiting = waiting;
    }
  }

  /** Returns the histograms of the last five minutes. Adding them up takes milliseconds, so it is done on demand. */
  #fresh(): Histograms {
    this.#current();
    if (!this.#isStale) return this.#whole;
    this.#isStale = false;
    for (const phase of PHASES) {
      this.#whole[phase].reset();
      for (const { histograms } of this.#buckets) {
        if (histograms !== undefined) this.#whole[phase].add(histograms[phase]);
      }
    }
    return this.#whole;
  }
}

function perPhase<Value>(make: (phase: Phase) => Value): Record<Phase, Value> {
  return { encode: make('encode'), wait: make('wait'), run: make('run'), total: make('total') };
}

function emptyHistograms(): Histograms {
  return perPhase(() => createHistogram(RANGE));
}

function emptyBucket(): Bucket {
  return { ...noCounts(), histograms: undefined };
}

function clear(bucket: Bucket): void {
  if (bucket.requests > 0) for (const phase of PHASES) bucket.histograms?.[phase].reset();
  Object.assign(bucket, noCounts());
}

function noCounts(): Omit<Bucket, 'histograms'> {
  const [maxMs, sumMs] = [perPhase(() => 0), perPhase(() => 0)];
  return { requests: 0, errors: 0, waiting: 0, maxMs, sumMs, percentiles: undefined };
}

function interval(bucket: Bucket, timeMs: number): Interval {
  const { requests, errors, waiting, sumMs, histograms, maxMs } = bucket;
  const answered = histograms?.total.count || 1;
  bucket.percentiles ??= percentiles(histograms?.total, maxMs.total);
  return {
    timeMs,
    requests,
    errors,
    ...bucket.percentiles,
    encodeMs: rounded(sumMs.encode / answered),
    waitMs: rounded(sumMs.wait / answered),
    runMs: rounded(sumMs.run / answered),
    waiting,
  };
}

/** Returns the percentiles of a histogram, none of them above `maxMs`: a histogram gives the upper end of a step. */
function percentiles(histogram: RecordableHistogram | undefined, maxMs: number): Percentiles {
  const at = (percent: number) =>
    histogram === undefined || histogram.count === 0
      ? 0
      : rounded(Math.min(histogram.percentile(percent) / 1000, maxMs));
  return { p50Ms: at(50), p95Ms: at(95), p99Ms: at(99) };
}

/** Returns milliseconds rounded to microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
