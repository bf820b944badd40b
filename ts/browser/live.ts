/** Keeps the dashboard's numbers fresh: requests `/stats` again and again, and pauses while the page is hidden. */
import { dashboardFields, type FieldName } from '../src/dashboard/fields.ts';
import { formatTime } from '../src/dashboard/format.ts';
import { histogramRows, histograms } from '../src/dashboard/histogram.ts';
import type { Snapshot } from '../src/dashboard/snapshot.ts';
import { stateCacheBar } from '../src/dashboard/state-cache.ts';
import { recentRows, seriesRows } from '../src/dashboard/tables.ts';
import { askServer } from './access.ts';
import { Charts } from './charts.ts';
import { fill, find, findAll, write } from './page.ts';

const EVERY_MS = 1000;
/** The timeout of one request, so that a server that hangs does not keep the page from asking again. */
const TIMEOUT_MS = 5000;

/** Starts the updates, which never end. */
export function goLive(): void {
  const view = new LiveView();
  let isPaused = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsking = false;
  const next = async () => {
    clearTimeout(timer);
    if (isPaused || document.hidden || isAsking) return;
    isAsking = true;
    const isOurs = await view.refresh();
    isAsking = false;
    if (isOurs) timer = setTimeout(next, EVERY_MS);
  };
  document.addEventListener('visibilitychange', () => void next());
  const button = find<HTMLButtonElement>(document, '[data-live-pause]');
  button.addEventListener('click', () => {
    isPaused = !isPaused;
    button.setAttribute('aria-pressed', String(isPaused));
    view.say(isPaused ? 'paused' : 'live');
    void next();
  });
  find(document, '[data-live]').hidden = false;
  void next();
}

const STATES = {
  live: 'Live',
  paused: 'Paused',
  gone: 'Not reachable',
  refused: 'Password needed: reload',
  replaced: 'New version: reload',
} as const;

/** Returns the server's current statistics, or the reason why there are none. */
async function latestStats(): Promise<Snapshot | 'gone' | 'refused'> {
  try {
    const response = await askServer('/stats', { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' });
    if (!response.ok) return response.status === 401 ? 'refused' : 'gone';
    return (await response.json()) as Snapshot;
  } catch {
    return 'gone';
  }
}

/** The texts in the place of the server's status when it is unknown. */
const UNKNOWN = {
  gone: 'The server does not answer',
  refused: 'Not known: the password is needed',
  replaced: 'Not known: the server is of another version',
} as const;

class LiveView {
  readonly #charts = new Charts(find(document, '[data-charts]'));
  readonly #fields = findAll(document, '[data-field]');
  readonly #state = find(document, '[data-live-state]');
  readonly #onlyErrors = find<HTMLInputElement>(document, '[data-only-errors]');
  readonly #version = find(document, '[data-live]').dataset.version;
  readonly #series = find<HTMLDetailsElement>(document, '[data-series]');
  #latest: Snapshot | undefined;

  constructor() {
    this.#onlyErrors.addEventListener('change', () => this.#show());
    this.#series.addEventListener('toggle', () => this.#show());
  }

  /** Sends one request and shows its result. Returns false if this script can no longer read the server's answers. */
  async refresh(): Promise<boolean> {
    const answer = await latestStats();
    if (typeof answer === 'string') {
      this.#lose(answer);
    } else if (answer.version !== this.#version) {
      // The server was replaced by another version. The page is not reloaded, because the user may have typed into it.
      this.#lose('replaced');
      return false;
    } else {
      this.#latest = answer;
      this.say('live');
      this.#show();
    }
    return true;
  }

  say(state: keyof typeof STATES): void {
    write(this.#state, STATES[state]);
    this.#state.dataset.state = state;
  }

  /** Shows that the status is unknown: the old numbers stay on the page, and must not make the server look healthy. */
  #lose(state: keyof typeof UNKNOWN): void {
    this.say(state);
    find(document, '.hero').dataset.status = 'unknown';
    for (const place of findAll(document, '[data-field="status"]')) write(place, UNKNOWN[state]);
  }

  #show(): void {
    const snapshot = this.#latest;
    if (!snapshot) return;
    const fields = dashboardFields(snapshot);
    for (const element of this.#fields) write(element, fields[element.dataset.field as FieldName]);
    find(document, '.hero').dataset.status = snapshot.model.status;
    find(document, '[data-first-steps]').hidden = snapshot.requests.total > 0;
    this.#charts.show(snapshot.series);
    const onlyErrors = this.#onlyErrors.checked;
    fill(find(document, '[data-rows="recent"]'), recentRows(snapshot.recent, { onlyErrors }));
    // A folded table is not visible, so it is not updated.
    if (this.#series.open) fill(find(document, '[data-rows="series"]'), seriesRows(snapshot.series));
    fill(find(document, '[data-rows="confidence"]'), histogramRows(snapshot));
    fill(find(document, '[data-histograms]'), histograms(snapshot));
    fill(find(document, '[data-cache-bar]'), stateCacheBar(snapshot));
  }
}

/** Rewrites the times of the page, which the server wrote in UTC, in this browser's time zone. */
export function localizeTimes(): void {
  for (const time of findAll<HTMLTimeElement>(document, 'tbody time')) write(time, formatTime(time.dateTime));
}
