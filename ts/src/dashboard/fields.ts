/**
 * The texts of the dashboard that change while it is open. The server writes them once, and the browser updates them.
 */

import { PHASES } from '../schemas/names.ts';
import {
  formatBytes,
  formatCount,
  formatDateTime,
  formatDuration,
  formatMs,
  formatPercent,
  formatRate,
  NOTHING,
} from './format.ts';
import { type Html, html } from './html.ts';
import { BUCKET_SECONDS, type Bucket, type Snapshot } from './snapshot.ts';

const STATUS_WORDS = {
  ok: 'Healthy',
  loading: 'Loading the model',
  draining: 'Shutting down',
  error: 'No model: it failed to load',
} as const;

/** Returns the text of each field by its name. */
export function dashboardFields(snapshot: Snapshot) {
  const { requests, queue, model, series } = snapshot;
  const recent = sums(series);
  // Failed requests have no time that counts, so without any answered request there is no value to show.
  const ms = (value: number) => (recent.requests === recent.errors ? NOTHING : formatMs(value));
  return {
    status: STATUS_WORDS[model.status],
    uptime: formatDuration(snapshot.uptime_seconds),
    rate: formatRate(currentRate(series)),
    running: formatCount(queue.running),
    waiting: formatCount(queue.waiting),
    p50: ms(requests.p50_ms),
    p95: ms(requests.p95_ms),
    p99: ms(requests.p99_ms),
    avg: ms(requests.avg_ms),
    max: ms(requests.max_ms),
    recent_errors: formatCount(recent.errors),
    error_share: recent.requests === 0 ? NOTHING : formatPercent(recent.errors / recent.requests),
    total: formatCount(requests.total),
    errors: formatCount(requests.errors),
    questions: formatCount(requests.questions),
    input_tokens: formatCount(requests.input_tokens),
    ...phaseFields(snapshot, ms),
    ...cacheFields(snapshot),
    model: model.model ?? NOTHING,
    version: model.version ?? NOTHING,
    device: model.device ?? NOTHING,
    sha256: model.sha256 ?? NOTHING,
    source: model.source ?? NOTHING,
    dir: model.dir ?? NOTHING,
    loaded_at: model.loaded_at === null ? NOTHING : formatDateTime(model.loaded_at),
    model_note: modelNote(snapshot),
  };
}

type Fields = ReturnType<typeof dashboardFields>;

export type FieldName = keyof Fields;

/** Returns a function that writes a field so that the browser can find it again. */
export function fieldWriter(snapshot: Snapshot): (name: FieldName) => Html {
  const fields = dashboardFields(snapshot);
  return (name) => html`<span data-field="${name}">${fields[name]}</span>`;
}

const PERCENTILES = ['p50', 'p95', 'p99'] as const;

type PhaseField = `${(typeof PHASES)[number]}_${(typeof PERCENTILES)[number]}`;

function phaseFields({ phases }: Snapshot, ms: (value: number) => string): Record<PhaseField, string> {
  const entries = PHASES.flatMap((phase) =>
    PERCENTILES.map((percentile) => [`${phase}_${percentile}`, ms(phases[phase][`${percentile}_ms`])] as const),
  );
  return Object.fromEntries(entries) as Record<PhaseField, string>;
}

function cacheFields({ state_cache }: Snapshot) {
  const { hits, misses, evictions, entries, bytes, limit_bytes } = state_cache;
  const needed = hits + misses;
  return {
    cache_share: needed === 0 ? NOTHING : formatPercent(hits / needed),
    cache_hits: formatCount(hits),
    cache_needed: formatCount(needed),
    cache_misses: formatCount(misses),
    cache_evictions: formatCount(evictions),
    cache_entries: formatCount(entries),
    cache_bytes: formatBytes(bytes),
    cache_limit: formatBytes(limit_bytes),
    cache_note: limit_bytes === 0 ? 'Nothing is kept: state_cache_bytes is 0, or there is no model.' : '',
  };
}

function sums(series: readonly Bucket[]): { readonly requests: number; readonly errors: number } {
  return {
    requests: series.reduce((total, bucket) => total + bucket.requests, 0),
    errors: series.reduce((total, bucket) => total + bucket.errors, 0),
  };
}

/** The number of buckets for the current rate; the newest bucket is not over and would pull the rate down. */
const RATE_BUCKETS = 2;

/** Returns the number of requests per second in the last two completed buckets, which cover ten seconds. */
function currentRate(series: readonly Bucket[]): number {
  const latest = series.slice(-RATE_BUCKETS - 1, -1);
  return sums(latest).requests / (RATE_BUCKETS * BUCKET_SECONDS);
}

/** Returns notes for the operator on the model's source and reloads; empty if everything is as configured. */
function modelNote({ model }: Snapshot): string {
  const notes = [
    model.fallback === true && 'This is not the wanted model: that one could not be had.',
    model.offline === true && 'The source of the model cannot be reached.',
    model.remote_version !== undefined &&
      model.remote_version !== model.version &&
      `Its source offers version ${model.remote_version}.`,
    model.previous && `It replaced ${model.previous.model} ${model.previous.version}.`,
    model.lost_device && `It runs on the processor; a model before ran on ${model.lost_device}.`,
    model.reload && 'A reload is under way.',
    model.failed_reload && `The latest reload failed (${model.failed_reload.code}): the log has the reason.`,
  ];
  return notes.filter((note) => typeof note === 'string').join(' ');
}
