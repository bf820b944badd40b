/** The progress display of a run: one line that is redrawn on a terminal, or a new line every ten seconds in a log. */

interface ProgressState {
  /** The number of finished rows, of this run and the earlier ones. */
  readonly rows: number;
  readonly bad: number;
  /** The finished share of the input, from 0 to 1. */
  readonly share: number;
}

interface ProgressOptions {
  readonly isTerminal: boolean;
  readonly write: (text: string) => void;
  readonly state: () => ProgressState;
}

const TERMINAL_INTERVAL_MS = 200;
const LOG_INTERVAL_MS = 10_000;
/** The time over which the rate is measured. */
const WINDOW_MS = 30_000;
const BAR_CELLS = 24;
export const ERASE_LINE = '\r\u001b[K';

interface Sample extends ProgressState {
  readonly timeMs: number;
}

/** Starts the display, and returns a function that ends it. */
export function showProgress({ isTerminal, write, state }: ProgressOptions): () => void {
  const samples: Sample[] = [{ ...state(), timeMs: performance.now() }];
  const tell = () => {
    const now = { ...state(), timeMs: performance.now() };
    while (samples.length > 1 && now.timeMs - (samples[0]?.timeMs ?? 0) > WINDOW_MS) samples.shift();
    const line = progressLine(samples[0] ?? now, now, isTerminal);
    samples.push(now);
    write(isTerminal ? `${ERASE_LINE}${line}` : `${line}\n`);
  };
  const timer = setInterval(tell, isTerminal ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS);
  return () => {
    clearInterval(timer);
    if (isTerminal) write(ERASE_LINE);
  };
}

/** Returns one line of progress, computed from the state `now` and the earlier state `before`. */
export function progressLine(before: Sample, now: Sample, hasBar: boolean): string {
  const seconds = (now.timeMs - before.timeMs) / 1000;
  const rate = seconds > 0 ? (now.rows - before.rows) / seconds : 0;
  const sharePerSecond = seconds > 0 ? (now.share - before.share) / seconds : 0;
  const percent = `${Math.floor(now.share * 100)} %`;
  const parts = [
    `${grouped(now.rows)} rows`,
    `${rate < 100 ? rate.toFixed(1) : grouped(Math.round(rate))} rows/s`,
    ...(sharePerSecond > 0 ? [`${duration((1 - now.share) / sharePerSecond)} left`] : []),
    ...(now.bad > 0 ? [`${grouped(now.bad)} bad`] : []),
  ];
  const filled = Math.round(Math.min(1, now.share) * BAR_CELLS);
  const bar = hasBar ? `[${'#'.repeat(filled)}${'-'.repeat(BAR_CELLS - filled)}] ` : '';
  return `${bar}${percent}, ${parts.join(', ')}`;
}

/** Returns a number with commas, such as `20,000`. */
export function grouped(number: number): string {
  return number.toLocaleString('en');
}

/** Returns a duration in words that suit its length, such as `45 s`, `12 min` or `3.5 h`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
