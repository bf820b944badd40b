/** The progress of a fetch: one line that is redrawn on a terminal, or a new line every ten seconds in a log. */
import { formatBytes } from '../dashboard/format.ts';
import type { FetchProgress } from '../model/download.ts';

const TERMINAL_INTERVAL_MS = 200;
const LOG_INTERVAL_MS = 10_000;
/** The time over which the rate is measured. */
const WINDOW_MS = 30_000;
const BAR_CELLS = 24;
const ERASE_LINE = '\r\u001b[K';

interface DisplayOptions {
  readonly isTerminal: boolean;
  readonly write: (text: string) => void;
}

/** The display, which is empty until the length of the wanted files is known. */
export class PullProgress implements FetchProgress {
  readonly #options: DisplayOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #samples: { readonly arrived: number; readonly timeMs: number }[] = [];
  #total: number | undefined;
  /** The bytes that are there, and those of them that have come in this fetch. */
  #bytes = 0;
  #arrived = 0;
  #others: readonly string[] = [];
  #hasEnded = false;

  constructor(options: DisplayOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#tell(), options.isTerminal ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS);
  }

  /** The graphs that the source also has. */
  get others(): readonly string[] {
    return this.#others;
  }

  expects(bytes: number): void {
    this.#total = bytes;
  }

  had(bytes: number): void {
    this.#bytes += bytes;
  }

  got(bytes: number): void {
    this.#bytes += bytes;
    this.#arrived += bytes;
  }

  leavesOut(graphs: readonly string[]): void {
    this.#others = graphs;
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.#options.isTerminal && !this.#hasEnded) this.#options.write(ERASE_LINE);
    this.#hasEnded = true;
  }

  #tell(): void {
    if (this.#total === undefined) return;
    const now = { arrived: this.#arrived, timeMs: performance.now() };
    while (this.#samples.length > 1 && now.timeMs - (this.#samples[0]?.timeMs ?? 0) > WINDOW_MS) this.#samples.shift();
    const before = this.#samples[0] ?? now;
    this.#samples.push(now);
    const seconds = (now.timeMs - before.timeMs) / 1000;
    const rate = seconds > 0 ? (now.arrived - before.arrived) / seconds : 0;
    const { isTerminal, write } = this.#options;
    const line = pullLine({ bytes: this.#bytes, total: this.#total, rate }, isTerminal);
    write(isTerminal ? `${ERASE_LINE}${line}` : `${line}\n`);
  }
}

interface PullState {
  readonly bytes: number;
  readonly total: number;
  /** Bytes in a second. */
  readonly rate: number;
}

/** Returns one line of progress. */
export function pullLine({ bytes, total, rate }: PullState, hasBar: boolean): string {
  const share = total === 0 ? 1 : Math.min(1, bytes / total);
  const filled = Math.floor(share * BAR_CELLS);
  const bar = hasBar ? `[${'#'.repeat(filled)}${'-'.repeat(BAR_CELLS - filled)}] ` : '';
  const percent = `${Math.floor(share * 100)} %`;
  if (share === 1) return `${bar}${percent}, ${formatBytes(total)}: it is checked and tried`;
  const left = rate > 0 ? [`${Math.ceil((total - bytes) / rate)} s left`] : [];
  return `${bar}${[percent, `${formatBytes(bytes)} of ${formatBytes(total)}`, `${formatBytes(rate)}/s`, ...left].join(', ')}`;
}
