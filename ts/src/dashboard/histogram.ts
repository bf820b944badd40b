/** The confidence of the answers: one small histogram for each question type, and the same numbers as a table. */

import { QUESTION_TYPES } from '../schemas/names.ts';
import { formatAmount, formatCount } from './format.ts';
import { type Html, html } from './html.ts';
import type { Snapshot } from './snapshot.ts';

const HEIGHT = 56;
const WIDTH = 200;

/** Returns the three histograms with their numbers. */
export function histograms({ confidence }: Pick<Snapshot, 'confidence'>): Html {
  return html`${QUESTION_TYPES.map((type) => histogram(type, confidence[type]))}`;
}

function histogram(type: string, counts: readonly number[]): Html {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...counts);
  const step = WIDTH / counts.length;
  const bars = counts.map((count, index) => {
    // Even a single answer among thousands stays visible.
    const height = count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
    return html`<rect x="${index * step + 1}" y="${(HEIGHT - height).toFixed(1)}" width="${step - 2}" height="${height.toFixed(1)}" rx="1"><title>${bin(index)}: ${formatCount(count)}</title></rect>`;
  });
  return html`<figure class="histogram">
  <figcaption><b>${type}</b> <span class="muted">${formatAmount(total, 'answer')}</span></figcaption>
  <svg viewBox="0 0 ${WIDTH} ${HEIGHT + 1}" preserveAspectRatio="none" role="img" aria-label="${summary(type, counts, total)}">${bars}<rect class="axis" y="${HEIGHT}" width="${WIDTH}" height="1"/></svg>
  <div class="scale" aria-hidden="true"><span>0</span><span>0.5</span><span>1</span></div>
</figure>`;
}

function summary(type: string, counts: readonly number[], total: number): string {
  if (total === 0) return `${type}: no answers yet`;
  const unsettled = counts.slice(0, 6).reduce((sum, count) => sum + count, 0);
  return `${type}: ${formatAmount(total, 'answer')}, ${unsettled} of them with a confidence below 0.6`;
}

/** Returns the numbers of the histograms as the rows of a table. */
export function histogramRows({ confidence }: Pick<Snapshot, 'confidence'>): Html {
  const bins = confidence.choice.map((_, index) => index);
  return html`${bins.map(
    (index) =>
      html`<tr><th scope="row">${bin(index)}</th>${QUESTION_TYPES.map(
        (type) => html`<td>${formatCount(confidence[type][index] ?? 0)}</td>`,
      )}</tr>`,
  )}`;
}

function bin(index: number): string {
  return `${(index / 10).toFixed(1)} to ${((index + 1) / 10).toFixed(1)}`;
}
