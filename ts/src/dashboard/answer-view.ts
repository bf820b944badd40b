/** A decision's answers as bars, with words and numbers next to them. */
import type { Answer, Decision, NamedProbability } from './answer.ts';
import { formatCount, formatMs, formatPercent } from './format.ts';
import { type Html, html } from './html.ts';

/** The times of a decision in milliseconds, as in the `Server-Timing` header. */
export interface TimingSplit {
  readonly encode: number;
  readonly wait: number;
  readonly run: number;
  readonly total: number;
}

/** Returns all answers of a decision as HTML. Headings start at `h3`. */
export function decisionView(decision: Decision, timing: TimingSplit): Html {
  const { truncatedTokens } = decision;
  return html`<div class="answers">${decision.answers.map(answerView)}</div>
${truncatedTokens > 0 && html`<p class="note warn">${formatCount(truncatedTokens)} tokens were left out: a text is longer than the model reads.</p>`}
${costView(decision, timing)}`;
}

function answerView(answer: Answer): Html {
  const { id, type, outcomes, confidence, answerConfidence, actProbability } = answer;
  const best = Math.max(...outcomes.map(({ probability }) => probability));
  return html`<section class="answer">
  <header><h3>${id}</h3> <span class="tag">${type}</span></header>
  <p class="verdict">${verdict(answer)} <span class="sure ${sureness(confidence).kind}">${sureness(confidence).words}</span></p>
  <table class="outcomes">
    <caption class="unseen">Probabilities of ${id}</caption>
    <thead class="unseen"><tr><th scope="col">Answer</th><th scope="col">Bar</th><th scope="col">Probability</th></tr></thead>
    <tbody>${outcomes.map((outcome) => outcomeRow(outcome, { type, isBest: outcome.probability === best }))}</tbody>
  </table>
  <p class="facts">confidence <b>${confidence.toFixed(2)}</b> · answer confidence <b>${answerConfidence.toFixed(2)}</b>${
    actProbability !== undefined && html` · act <b>${formatPercent(actProbability)}</b>`
  }</p>
</section>`;
}

function outcomeRow(
  { name, label, probability }: NamedProbability,
  { type, isBest }: { type: string; isBest: boolean },
): Html {
  const number = type === 'score' && html`<span class="level">${name}</span> `;
  return html`<tr${isBest && html` class="best"`}>
  <th scope="row">${number}${type === 'noul' ? YES_NO[label] : label}</th>
  <td aria-hidden="true">${bar(probability)}</td>
  <td>${formatPercent(probability)}</td>
</tr>`;
}

const YES_NO: Readonly<Record<string, string>> = { true: 'yes', false: 'no' };

/** Returns a bar of `share`, 0 to 1. The pages' policy forbids a style attribute, but not the size of a drawing. */
export function bar(share: number): Html {
  return html`<svg class="bar" width="100%" height="10"><rect width="${(share * 100).toFixed(2)}%" height="10" rx="2"/></svg>`;
}

function verdict({ type, value, outcomes }: Answer): Html {
  if (type === 'choice') return html`<strong>${value}</strong>`;
  const number = Number(value);
  if (type === 'noul') return html`<strong>${number >= 0.5 ? 'yes' : 'no'}</strong>`;
  const nearest = outcomes[Math.round(number)];
  return html`<strong>${number.toFixed(2)}</strong> <span class="muted">of ${outcomes.length - 1}${nearest && html`, near “${nearest.label}”`}</span>`;
}

/** Returns the confidence in words. Public clients treat a choice with a confidence below 0.6 as not settled. */
function sureness(confidence: number): { readonly words: string; readonly kind: string } {
  if (confidence < 0.2) return { words: 'close to a guess', kind: 'low' };
  if (confidence < 0.6) return { words: 'not settled', kind: 'low' };
  return confidence < 0.85 ? { words: 'fairly sure', kind: 'fair' } : { words: 'sure', kind: 'high' };
}

function costView({ inputTokens }: Decision, { encode, wait, run, total }: TimingSplit): Html {
  return html`<section class="cost">
  <h3 class="unseen">What it took</h3>
  ${splitBar({ encode, wait, run, total })}
  <dl class="split">
    <div class="encode"><dt>encode</dt><dd>${formatMs(encode)} ms</dd></div>
    <div class="wait"><dt>wait</dt><dd>${formatMs(wait)} ms</dd></div>
    <div class="run"><dt>run</dt><dd>${formatMs(run)} ms</dd></div>
    <div><dt>total</dt><dd>${formatMs(total)} ms</dd></div>
    <div><dt>tokens</dt><dd>${formatCount(inputTokens)}</dd></div>
  </dl>
</section>`;
}

function splitBar({ encode, wait, run, total }: TimingSplit): Html {
  const percent = (ms: number) => `${total === 0 ? 0 : ((ms / total) * 100).toFixed(2)}%`;
  return html`<svg class="splitbar" width="100%" height="8" aria-hidden="true">
    <rect class="encode" width="${percent(encode)}" height="8"/>
    <rect class="wait" x="${percent(encode)}" width="${percent(wait)}" height="8"/>
    <rect class="run" x="${percent(encode + wait)}" width="${percent(run)}" height="8"/>
  </svg>`;
}
