/** How long the decisions of the last five minutes took. Its memory is bounded and does not grow with the load. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Timing } from './engine.ts';

/** The parts of a decision's time, and all of it. */
export const PHASES = ['encode', 'wait', 'run', 'total'] as const;

export type Phase = (typeof PHASES)[number];

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

/** What happened in one bucket of time. */
export interface Interval extends Percentiles {
  /** When it began, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly requests: number;
  readonly errors: number;
  /** Averages. */
  readonly encodeMs: number;
  readonly waitMs: number;
  readonly runMs: number;
  /** Requests that waited for the model when it ended. */
  readonly waiting: number;
}

export interface LatenciesOptions {
  /** Monotonic milliseconds: setting the clock moves nothing. */
  readonly now?: () => number;
  /** How many requests wait for the model. */
  readonly waiting?: () => number;
}

const BUCKET_MS = 5000;
const BUCKETS = 60;

/** In microseconds. Two digits make a step of at most 1/128 of a value. What takes longer than an hour counts as that. */
const RANGE = { lowest: 1, highest: 3_600_000_000, figures: 2 };

type Histograms = PerPhase<RecordableHistogram>;

/** Five seconds. */
interface Bucket {
  requests: number;
  errors: number;
  waiting: number;
  maxMs: Record<Phase, number>;
  sumMs: Record<Phase, number>;
  /** Made when there is something to count, as they are large, and kept. */
  histograms: Histograms | undefined;
  /** Known once it is asked for; a bucket that is over never changes. */
  percentiles: Percentiles | undefined;
}

export class Latencies {
  readonly #now: () => number;
  readonly #waiting: () => number;
  readonly #startMs: number;
  /** Bucket number `n` since the start is at `n` modulo their count. */
  readonly #buckets = Array.from({ length: BUCKETS }, emptyBucket);
  #number = 0;
  /** All buckets as one. */
  readonly #whole = emptyHistograms();
  /** Whether `#whole` still has what is older than all buckets. */
  #isStale = false;

  constructor({ now = () => performance.now(), waiting = () => 0 }: LatenciesOptions = {}) {
    this.#now = now;
    this.#waiting = waiting;
    this.#startMs = now();
  }

  /** Counts one decision; without `timing` it got no answer, and how long that took says nothing. */
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

  /** Returns what happened when, oldest first; the last is not over. Those before the start are empty. */
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

  /** Returns the bucket of now, and empties those that come again in its place. */
  #current(): Bucket {
    const number = Math.floor((this.#now() - this.#startMs) / BUCKET_MS);
    if (number > this.#number) this.#advance(number);
    return this.#bucket(this.#number);
  }

  /** A bucket is ended by what comes after it: nothing has happened since, so what waits now waited then. */
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

  /** Returns the histograms of the last five minutes. Adding them up takes milliseconds, so it waits for a reader. */
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

/** No percentile is above `maxMs`: a histogram gives the upper end of a step. */
function percentiles(histogram: RecordableHistogram | undefined, maxMs: number): Percentiles {
  const at = (percent: number) =>
    histogram === undefined || histogram.count === 0
      ? 0
      : rounded(Math.min(histogram.percentile(percent) / 1000, maxMs));
  return { p50Ms: at(50), p95Ms: at(95), p99Ms: at(99) };
}

/** To microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
