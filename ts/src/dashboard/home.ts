/** The dashboard: the state of the server at the top, the playground in the middle, the details below. */

import { PHASES } from '../schemas/names.ts';
import { type FieldName, fieldWriter } from './fields.ts';
import { histogramRows, histograms } from './histogram.ts';
import { type Html, html } from './html.ts';
import { type AssetPaths, page } from './page.ts';
import { playground } from './playground.ts';
import type { Snapshot } from './snapshot.ts';
import { snippets } from './snippets.ts';
import { stateCacheCard } from './state-cache.ts';
import { recentRows, seriesRows } from './tables.ts';
import { tile } from './tile.ts';

interface HomeOptions {
  readonly snapshot: Snapshot;
  readonly assets: AssetPaths;
  /** The scheme, host and port that the page was requested from. */
  readonly origin: string;
}

type Write = (name: FieldName) => Html;

/** The server writes times in UTC; the browser replaces them with times in its own zone. */
const SERVER_TIME = { timeZone: 'UTC' } as const;

/** Returns the whole page. */
export function homePage({ snapshot, assets, origin }: HomeOptions): string {
  const write = fieldWriter(snapshot);
  const main = html`
${hero(snapshot, write)}
${tiles(write)}
${charts(snapshot, write)}
${playground({ origin, needsKey: snapshot.api_key })}
<div class="columns">
${recentCard(snapshot)}
${confidenceCard(snapshot)}
</div>
${stateCacheCard(snapshot, write)}
<div class="columns">
${modelCard(write)}
${callCard(snapshot, origin)}
</div>`;
  return page({ title: 'Dashboard', path: '/', assets, main, aside: liveControl(snapshot) });
}

function liveControl({ version }: Snapshot): Html {
  return html`<div class="live" data-live data-version="${version}" hidden>
  <span class="live-state" role="status" data-live-state>Live</span>
  <button type="button" class="quiet" data-live-pause aria-pressed="false">Pause</button>
</div>`;
}

function hero({ model }: Snapshot, write: Write): Html {
  return html`<section class="hero" data-status="${model.status}">
  <div>
    <div role="status"><h1><span class="dot" aria-hidden="true"></span>${write('status')}</h1></div>
    <p class="muted"><b>${write('model')}</b> ${write('version')} on ${write('device')} · up ${write('uptime')}</p>
  </div>
  <a class="button primary" href="#playground">Try a decision</a>
</section>`;
}

function tiles(write: Write): Html {
  return html`<dl class="tiles" aria-label="Right now">
  ${tile('Requests per second', write('rate'), html`${write('total')} since the start`)}
  ${tile('Waiting', write('waiting'), html`${write('running')} on the model`)}
  ${tile('Latency p50', html`${write('p50')} <small>ms</small>`, html`over five minutes; average ${write('avg')} ms`)}
  ${tile('Latency p95', html`${write('p95')} <small>ms</small>`, html`over five minutes`)}
  ${tile('Latency p99', html`${write('p99')} <small>ms</small>`, html`over five minutes; longest ${write('max')} ms`)}
  ${tile('Errors', write('recent_errors'), html`${write('error_share')} in five minutes`)}
</dl>`;
}

function charts(snapshot: Snapshot, write: Write): Html {
  return html`<section class="card" aria-labelledby="load">
  <h2 id="load">The last five minutes</h2>
  <p class="note" data-first-steps${snapshot.requests.total > 0 && html` hidden`}>Nobody has asked this server yet. Press “Decide” in
  the <a href="#playground">playground</a>, or send the line under “<a href="#call">Call it</a>”: the numbers follow by themselves.
  The charts have a point for every five seconds.</p>
  <div class="charts" data-charts>
    ${chart('latency', 'Latency, ms', ['p50', 'p95', 'p99'])}
    ${chart('rate', 'Requests per second', ['answered', 'failed'])}
    ${chart('split', 'Where the time goes, ms', ['encode', 'wait', 'run'])}
    ${phaseTable(write)}
  </div>
  <details data-series>
    <summary>The charts as numbers</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="The charts as numbers">
      <table class="numbers">
        <thead><tr><th scope="col">Time</th><th scope="col">Requests/s</th><th scope="col">Errors</th><th scope="col">Waiting</th>
        <th scope="col">p50</th><th scope="col">p95</th><th scope="col">p99</th><th scope="col">encode + wait + run</th></tr></thead>
        <tbody data-rows="series">${seriesRows(snapshot.series, SERVER_TIME)}</tbody>
      </table>
    </div>
  </details>
</section>`;
}

function chart(name: string, title: string, lines: readonly string[]): Html {
  return html`<figure class="chart" data-chart="${name}" data-needs-script hidden>
  <figcaption><h3>${title}</h3><ul class="legend">${lines.map(
    (line) => html`<li class="${line}"><span>${line}</span> <b data-latest="${line}"></b></li>`,
  )}</ul></figcaption>
  <div class="plot" data-plot role="img" aria-label="${title}: the numbers are in the table below"></div>
</figure>`;
}

function phaseTable(write: Write): Html {
  return html`<div class="phases">
  <h3 id="phases">Percentiles by phase, ms</h3>
  <table class="numbers" aria-labelledby="phases">
    <thead><tr><th scope="col">Phase</th><th scope="col">p50</th><th scope="col">p95</th><th scope="col">p99</th></tr></thead>
    <tbody>${PHASES.map(
      (phase) => html`<tr><th scope="row" class="${phase}">${phase}</th>
      <td>${write(`${phase}_p50`)}</td><td>${write(`${phase}_p95`)}</td><td>${write(`${phase}_p99`)}</td></tr>`,
    )}</tbody>
  </table>
</div>`;
}

function recentCard({ recent }: Snapshot): Html {
  return html`<section class="card wide" aria-labelledby="recent">
  <div class="card-head"><h2 id="recent">Latest requests</h2>
    <label class="check" data-needs-script hidden><input type="checkbox" data-only-errors> Only errors</label></div>
  <div class="scroll" tabindex="0" role="region" aria-label="Table of the latest requests">
    <table class="recent">
      <thead><tr><th scope="col">Time</th><th scope="col">Status</th><th scope="col">Error</th><th scope="col" class="number">ms</th>
      <th scope="col" class="number">Questions</th><th scope="col" class="number">Tokens</th></tr></thead>
      <tbody data-rows="recent">${recentRows(recent, SERVER_TIME)}</tbody>
    </table>
  </div>
</section>`;
}

function confidenceCard(snapshot: Snapshot): Html {
  return html`<section class="card" aria-labelledby="confidence">
  <h2 id="confidence">How sure the answers are</h2>
  <p class="muted">Answers since the start by their confidence: 0 is a blind guess, 1 is certain.</p>
  <div data-histograms>${histograms(snapshot)}</div>
  <details>
    <summary>As numbers</summary>
    <table class="numbers">
      <thead><tr><th scope="col">Confidence</th><th scope="col">choice</th><th scope="col">score</th><th scope="col">noul</th></tr></thead>
      <tbody data-rows="confidence">${histogramRows(snapshot)}</tbody>
    </table>
  </details>
</section>`;
}

function modelCard(write: Write): Html {
  const row = (label: string, name: FieldName) => html`<dt>${label}</dt><dd>${write(name)}</dd>`;
  return html`<section class="card" aria-labelledby="model">
  <h2 id="model">Model</h2>
  <dl class="facts-list">
    ${row('Name', 'model')}${row('Version', 'version')}${row('Device', 'device')}${row('Loaded', 'loaded_at')}
    ${row('Source', 'source')}${row('Folder', 'dir')}
    <dt>sha256</dt><dd><code>${write('sha256')}</code></dd>
    ${row('Questions', 'questions')}${row('Tokens read', 'input_tokens')}
  </dl>
  <p class="note">${write('model_note')}</p>
</section>`;
}

const EXAMPLE =
  '{"state": "I was charged twice.", "questions": {"refund": {"type": "noul", "instructions": "Does the customer want money back?"}}}';

function callCard({ api_key, version }: Snapshot, origin: string): Html {
  const [curl] = snippets({ origin, body: EXAMPLE, needsKey: api_key });
  return html`<section class="card" aria-labelledby="call">
  <h2 id="call">Call it</h2>
  <div class="snippet"><pre tabindex="0" role="region" aria-label="The line for curl" data-origin="${origin}">${curl.text}</pre></div>
  <p class="muted">${
    api_key
      ? html`The API key is on. Put it into a variable first: <code>export SVC_API_KEY=…</code>`
      : html`The API key is off: this works as it is.`
  }</p>
  <p class="muted">More requests to start from: <a href="/recipes">recipes</a>. For machines: <a href="/stats">/stats</a>,
  <a href="/metrics">/metrics</a>, <a href="/health">/health</a>. This is svc ${version}.</p>
</section>`;
}
