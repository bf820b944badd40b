/** The rows of the dashboard's tables that change while it is open. */
import { formatCount, formatMs, formatRate, formatTime, NOTHING } from './format.ts';
import { type Html, html } from './html.ts';
import { BUCKET_SECONDS, type Bucket, isAnswered, type RecentRequest } from './snapshot.ts';

interface RowOptions {
  /** The time zone of the times; left out in the browser, which knows its own. */
  readonly timeZone?: string;
  /** Whether only failed requests are shown; false by default. */
  readonly onlyErrors?: boolean;
}

/** Returns the latest requests, newest first. */
export function recentRows(recent: readonly RecentRequest[], { timeZone, onlyErrors = false }: RowOptions = {}): Html {
  const shown = recent.filter(({ status }) => !onlyErrors || status >= 400);
  if (shown.length === 0) {
    return html`<tr><td colspan="6" class="empty">${onlyErrors && recent.length > 0 ? 'None of them failed.' : 'No request yet.'}</td></tr>`;
  }
  return html`${shown.map((request) => recentRow(request, timeZone))}`;
}

function recentRow({ time, status, error, ms, questions, input_tokens }: RecentRequest, timeZone?: string): Html {
  return html`<tr${status >= 400 && html` class="failed"`}>
<td><time datetime="${time}">${formatTime(time, timeZone)}</time></td>
<td><span class="status">${status}</span></td>
<td>${error !== undefined && html`<code>${error}</code>`}</td>
<td class="number">${formatMs(ms)}</td>
<td class="number">${formatCount(questions)}</td>
<td class="number">${formatCount(input_tokens)}</td>
</tr>`;
}

/** Returns rows for the buckets with any requests, newest first. */
export function seriesRows(series: readonly Bucket[], { timeZone }: RowOptions = {}): Html {
  const busy = series.filter(({ requests, waiting }) => requests > 0 || waiting > 0).reverse();
  if (busy.length === 0) return html`<tr><td colspan="8" class="empty">No request in the last five minutes.</td></tr>`;
  return html`${busy.map((bucket) => seriesRow(bucket, timeZone))}`;
}

function seriesRow(bucket: Bucket, timeZone?: string): Html {
  const ms = (value: number) => (isAnswered(bucket) ? formatMs(value) : NOTHING);
  return html`<tr><td><time datetime="${bucket.time}">${formatTime(bucket.time, timeZone)}</time></td>
<td>${formatRate(bucket.requests / BUCKET_SECONDS)}</td><td>${formatCount(bucket.errors)}</td><td>${formatCount(bucket.waiting)}</td>
<td>${ms(bucket.p50_ms)}</td><td>${ms(bucket.p95_ms)}</td><td>${ms(bucket.p99_ms)}</td>
<td>${ms(bucket.encode_ms)} + ${ms(bucket.wait_ms)} + ${ms(bucket.run_ms)}</td></tr>`;
}
