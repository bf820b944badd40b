/** The report of `svc bench`: percentiles and a histogram of the times, as text and as JSON. */
import { formatCount, formatMs, formatRate, NOTHING } from '../../dashboard/format.ts';
import type { LoadResult, Sample } from './load.ts';

/** A measurement of a server. */
export interface Measured extends LoadResult {
  /** The origin of the server. */
  readonly server: string;
  readonly concurrency: number;
}

/** The measures of a list of times. */
const MEASURES = ['mean', 'p50', 'p90', 'p95', 'p99', 'max'] as const;
type Summary = Readonly<Record<(typeof MEASURES)[number], number>>;

const PHASES = { total: 'totalMs', wait: 'waitMs', run: 'runMs' } as const satisfies Record<string, keyof Sample>;
type Phase = keyof typeof PHASES;

const MEANINGS: Readonly<Record<Phase, string>> = {
  total: 'from the request to the end of the answer, as seen here',
  wait: 'of it in the line for the model, as the server says',
  run: 'of it on the model',
};

/** The number of bins that a histogram aims at. */
const BINS = 10;
const BAR_CELLS = 40;

/** A bin of a histogram: its limits in milliseconds, the last one without an upper limit, and its count. */
export interface Bin {
  readonly from: number;
  readonly to: number | null;
  readonly answers: number;
}

/** Returns the smallest time that a share of the sorted times does not exceed (nearest rank); NaN if there is none. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

function summaryOf(times: readonly number[]): Summary {
  const sorted = times.filter((time) => !Number.isNaN(time)).sort((one, other) => one - other);
  const sum = sorted.reduce((total, time) => total + time, 0);
  const [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map((share) => percentile(sorted, share)) as [
    number,
    number,
    number,
    number,
  ];
  return { mean: sum / sorted.length, p50, p90, p95, p99, max: sorted.at(-1) ?? Number.NaN };
}

/** Returns bins of one width from the shortest time to the 99th percentile, and one for all longer times. */
export function histogramOf(times: readonly number[]): Bin[] {
  const sorted = times.toSorted((one, other) => one - other);
  const [first] = sorted;
  if (first === undefined) return [];
  const last = percentile(sorted, 0.99);
  const width = roundWidth((last - first) / BINS);
  const start = Math.floor(first / width);
  const count = Math.floor(last / width) - start + 1;
  // The digits behind the twelfth come from binary fractions.
  const edge = (at: number) => Number(((start + at) * width).toPrecision(12));
  const within = (from: number, to: number) => sorted.filter((time) => time >= from && time < to).length;
  const bins = Array.from({ length: count }, (_, at) => {
    const [from, to] = [edge(at), edge(at + 1)];
    return { from, to, answers: within(from, to) };
  });
  const end = bins.at(-1)?.to ?? 0;
  const over = sorted.filter((time) => time >= end).length;
  return over === 0 ? bins : [...bins, { from: end, to: null, answers: over }];
}

/** Returns the next width of 1, 2 or 5 times a power of ten; at least a tenth of a millisecond. */
function roundWidth(ms: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(ms, 0.1)));
  return ([1, 2, 5, 10].find((times) => times * power >= ms) ?? 10) * power;
}

/** Returns the report for programs; a time that the server does not say is null. */
export function benchJson(measured: Measured): object {
  const { server, concurrency, seconds, samples, failures } = measured;
  return {
    server,
    seconds,
    concurrency,
    answers: samples.length,
    answers_per_second: samples.length / seconds,
    failures: Object.fromEntries(failures),
    ms: Object.fromEntries(phases(measured)),
    histogram: histogramOf(samples.map(({ totalMs }) => totalMs)),
  };
}

function phases({ samples }: Measured): (readonly [Phase, Summary])[] {
  return (Object.entries(PHASES) as [Phase, keyof Sample][]).map(([phase, field]) => [
    phase,
    summaryOf(samples.map((sample) => sample[field])),
  ]);
}

/** Returns the report for a person. */
export function benchText(measured: Measured): string {
  const { server, concurrency, seconds, samples, failures } = measured;
  const rate = `${formatRate(samples.length / seconds)} a second`;
  const title = `${server}: ${formatCount(samples.length)} answers in ${seconds.toFixed(1)} s, ${rate}, ${concurrency} at once`;
  const failed = [...failures].map(([what, count]) => `${formatCount(count)} times ${what}`);
  const head = failed.length === 0 ? `${title}; none failed` : `${title}; failed: ${failed.join(', ')}`;
  const columns = MEASURES.map((name) => name.padStart(8)).join('');
  const rows = phases(measured).map(([phase, summary]) => {
    const numbers = MEASURES.map((name) => shownMs(summary[name]).padStart(8)).join('');
    return `  ${phase.padEnd(5)}${numbers}   ${MEANINGS[phase]}`;
  });
  return [head, '', `  ms   ${columns}`, ...rows, '', ...histogramLines(samples), ''].join('\n');
}

function shownMs(ms: number): string {
  return Number.isNaN(ms) ? NOTHING : formatMs(ms);
}

function histogramLines(samples: readonly Sample[]): string[] {
  const bins = histogramOf(samples.map(({ totalMs }) => totalMs));
  const most = Math.max(1, ...bins.map(({ answers }) => answers));
  const names = bins.map(({ from, to }) => (to === null ? `over ${from}` : `${from} to ${to}`));
  const width = Math.max(...names.map((name) => name.length), 0);
  return bins.map(({ answers }, at) => {
    const bar = '█'.repeat(Math.ceil((answers / most) * BAR_CELLS));
    return `  ${(names[at] ?? '').padStart(width)} ms  ${bar}${bar === '' ? '' : ' '}${formatCount(answers)}`;
  });
}
