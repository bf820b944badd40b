/** `GET /stats`: the numbers of the dashboard, as JSON. Only for the operator. */
import type { Middleware } from 'koa';
import type { CacheStats } from '../../engine/contract.ts';
import type { EngineSlot } from '../../model/slot.ts';
import type { StatsSnapshot } from '../../schemas/stats.ts';
import type { Interval, Percentiles, PerPhase } from '../../stats/latencies.ts';
import type { RecentDecision, Stats } from '../../stats/stats.ts';
import { packageVersion } from '../../version.ts';
import { healthRecord } from '../health-record.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { RequestState } from '../middleware/request.ts';

const VERSION = packageVersion();

interface StatsParts {
  readonly slot: EngineSlot;
  readonly lifecycle: Lifecycle;
  readonly stats: Stats;
  readonly hasApiKey: boolean;
}

export function showStats(snapshot: () => StatsSnapshot): Middleware<RequestState> {
  return (ctx) => {
    ctx.body = snapshot();
  };
}

/** Returns the current numbers. */
export function statsSnapshot({ slot, lifecycle, stats, hasApiKey }: StatsParts): StatsSnapshot {
  const model = healthRecord(slot, lifecycle.phase);
  const exactness = slot.model?.info.exactness;
  const { running, waiting } = slot.queue();
  return {
    uptime_seconds: Math.round(stats.uptimeSeconds),
    version: VERSION,
    api_key: hasApiKey,
    device: model.device,
    requests: requests(stats),
    queue: { running, waiting },
    state_cache: stateCache(slot.cache()),
    phases: phases(stats.phases()),
    per_question_type: stats.questionsByType,
    confidence: stats.confidences,
    series: stats.series().map(intervalRecord),
    recent: stats.recent().map(recent),
    model: { ...model, ...(exactness !== undefined && { exactness }) },
  };
}

function stateCache({ hits, misses, evictions, entries, bytes, limitBytes }: CacheStats): StatsSnapshot['state_cache'] {
  return { hits, misses, evictions, entries, bytes, limit_bytes: limitBytes };
}

function requests(stats: Stats): StatsSnapshot['requests'] {
  const { avgMs, maxMs, ...rest } = stats.latency();
  return {
    total: stats.requests,
    errors: stats.errors,
    questions: stats.questions,
    input_tokens: stats.inputTokens,
    avg_ms: avgMs,
    ...percentilesRecord(rest),
    max_ms: maxMs,
  };
}

function phases({ encode, wait, run, total }: PerPhase<Percentiles>): StatsSnapshot['phases'] {
  return {
    encode: percentilesRecord(encode),
    wait: percentilesRecord(wait),
    run: percentilesRecord(run),
    total: percentilesRecord(total),
  };
}

function percentilesRecord({ p50Ms, p95Ms, p99Ms }: Percentiles) {
  return { p50_ms: p50Ms, p95_ms: p95Ms, p99_ms: p99Ms };
}

function intervalRecord(interval: Interval): StatsSnapshot['series'][number] {
  const { timeMs, requests, errors, encodeMs, waitMs, runMs, waiting } = interval;
  const averages = { encode_ms: encodeMs, wait_ms: waitMs, run_ms: runMs };
  return { time: rfc3339(timeMs), requests, errors, ...percentilesRecord(interval), ...averages, waiting };
}

function recent({
  timeMs,
  ms,
  questions,
  inputTokens,
  status,
  error,
}: RecentDecision): StatsSnapshot['recent'][number] {
  const request = {
    time: rfc3339(timeMs),
    ms: Math.round(ms * 100) / 100,
    questions,
    input_tokens: inputTokens,
    status,
  };
  return error === undefined ? request : { ...request, error };
}

const rfc3339 = (timeMs: number) => new Date(timeMs).toISOString();
