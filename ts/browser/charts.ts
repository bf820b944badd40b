/** The three charts of the last five minutes. */
import uPlot from 'uplot';
import { formatMs, formatRate } from '../src/dashboard/format.ts';
import { BUCKET_SECONDS, type Bucket, isAnswered } from '../src/dashboard/snapshot.ts';
import { find, write } from './page.ts';

/** One line of a chart: its values and its style. */
interface Line {
  readonly name: string;
  readonly value: (bucket: Bucket) => number;
  /** The CSS custom property that holds its colour. */
  readonly color: string;
  readonly dash?: readonly number[];
  readonly isFilled?: boolean;
}

interface ChartKind {
  readonly lines: readonly Line[];
  /** Whether each line is stacked on the lines before it. */
  readonly isStacked?: boolean;
  /** Whether a bucket without requests has the value zero; otherwise its value is unknown. */
  readonly isCount?: boolean;
  readonly format: (value: number) => string;
}

const CHARTS: Readonly<Record<string, ChartKind>> = {
  latency: {
    format: formatMs,
    lines: [
      { name: 'p50', value: (bucket) => bucket.p50_ms, color: '--line-1' },
      { name: 'p95', value: (bucket) => bucket.p95_ms, color: '--line-2', dash: [6, 3] },
      { name: 'p99', value: (bucket) => bucket.p99_ms, color: '--line-3', dash: [2, 3] },
    ],
  },
  split: {
    format: formatMs,
    isStacked: true,
    lines: [
      { name: 'encode', value: (bucket) => bucket.encode_ms, color: '--phase-encode', isFilled: true },
      { name: 'wait', value: (bucket) => bucket.wait_ms, color: '--phase-wait', isFilled: true },
      { name: 'run', value: (bucket) => bucket.run_ms, color: '--phase-run', isFilled: true },
    ],
  },
  rate: {
    format: formatRate,
    isStacked: true,
    isCount: true,
    lines: [
      { name: 'failed', value: (bucket) => bucket.errors / BUCKET_SECONDS, color: '--bad', isFilled: true },
      {
        name: 'answered',
        value: (bucket) => (bucket.requests - bucket.errors) / BUCKET_SECONDS,
        color: '--line-1',
        isFilled: true,
      },
    ],
  },
};

const HEIGHT = 160;

const AXIS = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

/** Draws all charts in `root`, and redraws them when the colours of the page change. */
export class Charts {
  readonly #charts: readonly Chart[];

  constructor(root: HTMLElement) {
    this.#charts = [...root.querySelectorAll<HTMLElement>('[data-chart]')].map((figure) => new Chart(figure));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const chart of this.#charts) chart.redraw();
    });
  }

  show(series: readonly Bucket[]): void {
    for (const chart of this.#charts) chart.show(series);
  }
}

class Chart {
  readonly #figure: HTMLElement;
  readonly #place: HTMLElement;
  readonly #kind: ChartKind;
  #plot: uPlot | undefined;
  #data: uPlot.AlignedData = [[]];

  constructor(figure: HTMLElement) {
    const kind = CHARTS[figure.dataset.chart ?? ''];
    if (!kind) throw new Error(`there is no chart ${figure.dataset.chart}`);
    this.#figure = figure;
    this.#kind = kind;
    this.#place = find(figure, '[data-plot]');
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#place);
  }

  show(series: readonly Bucket[]): void {
    const { lines, format, isCount = false } = this.#kind;
    // The newest bucket is not over, so every line would drop at its end.
    const done = series.slice(0, -1);
    this.#data = plotData(done, this.#kind);
    const last = done.at(-1);
    for (const { name, value } of lines) {
      const isKnown = last !== undefined && (isCount || isAnswered(last));
      write(find(this.#figure, `[data-latest="${name}"]`), isKnown ? format(value(last)) : '–');
    }
    this.#place.classList.toggle(
      'idle',
      done.every(({ requests }) => requests === 0),
    );
    if (this.#plot) this.#plot.setData(this.#data);
    else this.redraw();
  }

  redraw(): void {
    this.#plot?.destroy();
    this.#plot = new uPlot(plotOptions(this.#kind, this.#size()), this.#data, this.#place);
  }

  #size(): { readonly width: number; readonly height: number } {
    return { width: Math.max(120, this.#place.clientWidth), height: HEIGHT };
  }
}

/** Returns the data of a chart. A bucket without answers is a gap in measured values, and a zero in counts. */
function plotData(
  series: readonly Bucket[],
  { lines, isStacked = false, isCount = false }: ChartKind,
): uPlot.AlignedData {
  const times = series.map(({ time }) => Date.parse(time) / 1000);
  const values = lines.map(({ value }, index) =>
    series.map((bucket) => {
      if (!isCount && !isAnswered(bucket)) return null;
      const under = isStacked ? lines.slice(0, index) : [];
      return under.reduce((sum, line) => sum + line.value(bucket), value(bucket));
    }),
  );
  // The highest line of a stack is drawn first, and the others over it.
  return [times, ...(isStacked ? values.reverse() : values)] as uPlot.AlignedData;
}

function plotOptions({ lines, isStacked = false }: ChartKind, size: { width: number; height: number }): uPlot.Options {
  const drawn = isStacked ? [...lines].reverse() : lines;
  const [text, grid] = [color('--muted'), color('--grid')];
  const axis = { stroke: text, font: `11px ${getComputedStyle(document.body).fontFamily}`, ticks: { show: false } };
  return {
    ...size,
    // The right edge needs room for half of a time label.
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, max) => [0, niceMax(max)] } },
    series: [{}, ...drawn.map(plotSeries)],
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        space: 56,
        // The clock shows minutes: a mark between two of them would have the label of the one before it.
        incrs: [60, 120, 300],
        values: (_, times) => times.map(clock),
      },
      {
        ...axis,
        grid: { stroke: grid, width: 1 },
        size: 44,
        space: 32,
        values: (_, values) => values.map((value) => AXIS.format(value)),
      },
    ],
  };
}

function plotSeries({ color: name, dash, isFilled = false }: Line): uPlot.Series {
  const stroke = color(name);
  return {
    stroke,
    // The outline of an empty area would be visible as a line.
    width: isFilled ? 0 : 1.75,
    ...(dash && { dash: [...dash] }),
    ...(isFilled && { fill: stroke }),
    points: { show: (plot, index) => isAlone(plot.data[index]), size: 4, fill: stroke },
  };
}

/**
 * Whether any value has no known neighbour: a line needs two points, so such a value would be invisible without a
 * point.
 */
function isAlone(values: ArrayLike<number | null | undefined> | undefined): boolean {
  const known = Array.from(values ?? []);
  return known.some((value, index) => value != null && known[index - 1] == null && known[index + 1] == null);
}

function niceMax(max: number | null): number {
  return max === null || max <= 0 ? 1 : max * 1.1;
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
