/** The server's numbers for Prometheus. No label has a value that comes from outside. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Timing } from '../engine/contract.ts';
import type { EngineSlot } from '../model/slot.ts';
import { PHASES } from '../schemas/names.ts';
import type { Stats } from './stats.ts';

/** The bounds of the buckets: from half a millisecond to the longest time that a request may wait. */
const BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

interface MetricsParts {
  readonly stats: Stats;
  readonly slot: EngineSlot;
  /** Returns how many lines of the log were lost. */
  readonly lostLines: () => number;
}

/** A value of a metric, as prom-client keeps it. */
export interface KnownValue {
  readonly value: number;
  readonly labels: Readonly<Partial<Record<string, string | number>>>;
  /** The name of a histogram's part: that of the metric with `_bucket`, `_sum` or `_count`. */
  readonly metricName?: string;
}

/** A metric with its values. A histogram's buckets stand in their order, each with all those below it. */
export interface KnownMetric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly values: readonly KnownValue[];
}

export class Metrics {
  /** The `Content-Type` of `text()`. */
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #registry = new Registry();
  readonly #update: () => void;
  readonly #responses: Counter<'status'>;
  readonly #duration: Histogram<'phase'>;

  constructor({ stats, slot, lostLines }: MetricsParts) {
    const registers = [this.#registry];
    const updates = [
      countDecisions(stats, registers),
      gaugeLatency(stats, registers),
      gaugeEngine(slot, registers),
      showCache(slot, registers),
      countLostLines(lostLines, registers),
    ];
    this.#update = () => {
      for (const update of updates) update();
    };
    this.#responses = new Counter({
      name: 'svc_responses_total',
      help: 'Answers of all routes, by HTTP status; 499 is a caller who has gone.',
      labelNames: ['status'],
      registers,
    });
    this.#duration = new Histogram({
      name: 'svc_request_duration_seconds',
      help: 'How long answered decisions took, by phase: encode, wait (for the model), run (on it), total.',
      labelNames: ['phase'],
      buckets: BUCKETS_SECONDS,
      registers,
    });
    for (const phase of PHASES) this.#duration.zero({ phase });
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Counts one answer of any route. */
  countResponse(status: number): void {
    this.#responses.inc({ status });
  }

  /** Notes how long one answered decision took. */
  observe(timing: Timing): void {
    for (const phase of PHASES) this.#duration.observe({ phase }, timing[`${phase}Ms`] / 1000);
  }

  /** Returns all metrics with their values. */
  async known(): Promise<readonly KnownMetric[]> {
    this.#update();
    // In prom-client's own types, the type of a metric is a number.
    return (await this.#registry.getMetricsAsJSON()) as unknown as readonly KnownMetric[];
  }

  /** Returns all metrics in Prometheus's text format. */
  text(): Promise<string> {
    this.#update();
    return this.#registry.metrics();
  }
}

/** Returns a function that sets a counter to a number that was counted elsewhere. */
function counter(name: string, help: string, registers: Registry[]): (count: number) => void {
  const metric = new Counter({ name, help, registers });
  return (count) => {
    metric.reset();
    metric.inc(count);
  };
}

function countDecisions(stats: Stats, registers: Registry[]): () => void {
  const requests = counter(
    'svc_requests_total',
    'Decision requests, answered or not; those that were refused, too.',
    registers,
  );
  const errors = counter('svc_request_errors_total', 'Decision requests that got an error or were refused.', registers);
  const questions = counter('svc_questions_total', 'Questions answered.', registers);
  const inputTokens = counter('svc_input_tokens_total', 'Tokens that answers were made from.', registers);
  return () => {
    requests(stats.requests);
    errors(stats.errors);
    questions(stats.questions);
    inputTokens(stats.inputTokens);
  };
}

function gaugeLatency(stats: Stats, registers: Registry[]): () => void {
  const gauge = (name: string, what: string) =>
    new Gauge({
      name: `svc_latency_ms_${name}`,
      help: `${what} of the last five minutes, in milliseconds.`,
      registers,
    });
  const avg = gauge('avg', 'Average time of an answered decision');
  const p50 = gauge('p50', 'Median time of an answered decision');
  const p95 = gauge('p95', '95th percentile of the time of an answered decision');
  const p99 = gauge('p99', '99th percentile of the time of an answered decision');
  const max = gauge('max', 'Longest time of an answered decision');
  return () => {
    const { avgMs, p50Ms, p95Ms, p99Ms, maxMs } = stats.latency();
    avg.set(avgMs);
    p50.set(p50Ms);
    p95.set(p95Ms);
    p99.set(p99Ms);
    max.set(maxMs);
  };
}

function gaugeEngine(slot: EngineSlot, registers: Registry[]): () => void {
  const running = new Gauge({ name: 'svc_queue_running', help: 'Requests on the model.', registers });
  const waiting = new Gauge({ name: 'svc_queue_waiting', help: 'Requests that wait for the model.', registers });
  const newestFirst = new Gauge({
    name: 'svc_queue_newest_first',
    help: '1 while the newest request goes first, since callers hang up before their turn.',
    registers,
  });
  const model = new Gauge({
    name: 'svc_model_info',
    help: 'The loaded model; the value is always 1. Nothing while none is loaded.',
    labelNames: ['name', 'version', 'sha256', 'device', 'exactness'],
    registers,
  });
  const failed = new Gauge({
    name: 'svc_model_reload_failed',
    help: '1 while the latest load of another model has failed; the loaded model goes on answering.',
    registers,
  });
  return () => {
    const queue = slot.queue();
    running.set(queue.running);
    waiting.set(queue.waiting);
    newestFirst.set(Number(queue.newestFirst));
    failed.set(slot.model && slot.failure ? 1 : 0);
    model.reset();
    if (slot.model === undefined) return;
    const { name, version, sha256, device, exactness } = slot.model.info;
    model.set({ name, version, sha256, device, exactness }, 1);
  };
}

/**
 * Returns a function that updates the metrics of the KV cache. A newly loaded model starts with an empty cache and zero
 * counts, as a process that starts again does.
 */
function showCache(slot: EngineSlot, registers: Registry[]): () => void {
  const hits = counter('svc_state_cache_hits_total', 'Chunks of states that were kept when needed.', registers);
  const misses = counter('svc_state_cache_misses_total', 'Chunks of states that had to be read.', registers);
  const evictions = counter('svc_state_cache_evictions_total', 'Kept entries that made room for others.', registers);
  const gauge = (name: string, help: string) => new Gauge({ name: `svc_state_cache_${name}`, help, registers });
  const entries = gauge('entries', 'Kept entries: chunks of states, and whole states of several chunks.');
  const bytes = gauge('bytes', 'Bytes of memory that the kept entries take.');
  const limit = gauge('limit_bytes', 'Bytes of memory that they may take; 0 keeps nothing.');
  return () => {
    const cache = slot.cache();
    hits(cache.hits);
    misses(cache.misses);
    evictions(cache.evictions);
    entries.set(cache.entries);
    bytes.set(cache.bytes);
    limit.set(cache.limitBytes);
  };
}

function countLostLines(lostLines: () => number, registers: Registry[]): () => void {
  const lost = counter('svc_log_lines_lost_total', 'Lines of the log that could not be written.', registers);
  return () => lost(lostLines());
}
