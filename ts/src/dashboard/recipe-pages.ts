/** The list of recipes, and the page of each. */
import { readDecision } from './answer.ts';
import { decisionView, type TimingSplit } from './answer-view.ts';
import { formatDateTime } from './format.ts';
import { type Html, html } from './html.ts';
import { type AssetPaths, page } from './page.ts';
import { RECIPES } from './recipes/index.ts';
import { type Recipe, recipeText } from './recipes/recipe.ts';
import { snippets } from './snippets.ts';
import { snippetTabs } from './tabs.ts';

/** The answer of the loaded model, or the reason why there is none. */
export type RecipeAnswer = RecipeReply | { readonly problem: string };

interface RecipeReply {
  /** The body of the answer as the engine wrote it. */
  readonly body: string;
  readonly timing: TimingSplit;
  /** The time of the answer, in RFC 3339. */
  readonly time: string;
  readonly model: { readonly name: string; readonly version: string };
  /** Whether the answer is from the model that comes with the server, which is known to be weak. */
  readonly isEmbedded: boolean;
}

/** Returns the page that lists all recipes. */
export function recipeListPage(assets: AssetPaths): string {
  const main = html`<div class="intro">
  <h1>Recipes</h1>
  <p class="muted">Whole decisions to start from. Each page asks the loaded model, shows what it really answered, and how to act on it.</p>
</div>
<ul class="recipes">${RECIPES.map(listEntry)}</ul>`;
  return page({ title: 'Recipes', path: '/recipes', assets, main });
}

function listEntry({ name, title, summary, request }: Recipe): Html {
  const types = new Set(Object.values(request.questions).map(({ type }) => type));
  return html`<li class="card"><h2><a href="/recipes/${name}">${title}</a></h2>
<p>${summary}</p>
<p class="tags">${[...types].map((type) => html`<span class="tag">${type}</span> `)}${
    typeof request.state !== 'string' && html`<span class="tag">JSON state</span>`
  }</p></li>`;
}

interface RecipePageOptions {
  readonly recipe: Recipe;
  readonly answer: RecipeAnswer;
  readonly assets: AssetPaths;
  readonly origin: string;
  readonly needsKey: boolean;
}

/** Returns the page of one recipe. */
export function recipePage({ recipe, answer, assets, origin, needsKey }: RecipePageOptions): string {
  const { name, title, summary, why } = recipe;
  const body = recipeText(recipe);
  const main = html`<div class="intro">
  <p class="crumb"><a href="/recipes">Recipes</a></p>
  <h1>${title}</h1>
  <p class="lead">${summary}</p>
</div>
<div class="columns even">
  <section class="card" aria-labelledby="why"><h2 id="why">Why</h2><p>${why}</p>
    ${caseView(recipe)}
    <h2>How to act on it</h2>
    ${stepTable(recipe)}
    <p class="note">The thresholds are a start. Take yours from a few hundred cases of your own whose right answer you know.</p>
  </section>
  <section class="card" aria-labelledby="answer"><h2 id="answer">What this server answers</h2>${answerPart(answer)}</section>
</div>
<section class="card" aria-labelledby="request">
  <div class="card-head"><h2 id="request">The request</h2><a class="button primary" href="/#recipe=${name}">Open in the playground</a></div>
  ${needsKey && html`<p class="muted">The API key is on: the code reads it from <code>SVC_API_KEY</code>.</p>`}
  <div data-origin="${origin}">${snippetTabs([{ name: 'JSON', text: body }, ...snippets({ origin, body, needsKey })])}</div>
</section>
${neighbours(recipe)}`;
  return page({ title, path: '/recipes', assets, main });
}

/** Returns the state and the questions in the words of a person. */
function caseView({ request: { state, questions } }: Recipe): Html {
  return html`<h2>The case</h2>
<blockquote>${typeof state === 'string' ? state : html`<code>${JSON.stringify(state, null, 2)}</code>`}</blockquote>
<dl class="facts-list asked">${Object.entries(questions).map(
    ([id, { instructions }]) => html`<dt>${id}</dt><dd>${instructions}</dd>`,
  )}</dl>`;
}

function stepTable({ steps }: Recipe): Html {
  return html`<table class="steps"><thead><tr><th scope="col">When</th><th scope="col">Then</th></tr></thead>
<tbody>${steps.map(({ when, action }) => html`<tr><th scope="row">${when}</th><td>${action}</td></tr>`)}</tbody></table>`;
}

function answerPart(answer: RecipeAnswer): Html {
  if ('problem' in answer) return html`<p class="note warn">${answer.problem}</p>`;
  const { body, timing, time, model, isEmbedded } = answer;
  return html`<p class="muted">Said by <b>${model.name}</b> ${model.version}, the loaded model, on
<time datetime="${time}">${formatDateTime(time)}</time>. Nobody has corrected it.${
    isEmbedded && ' It is the small first model that comes with the server, and it is weak: it may well be wrong here.'
  }</p>
${decisionView(readDecision(body), timing)}`;
}

function neighbours(recipe: Recipe): Html {
  const at = RECIPES.indexOf(recipe);
  const [before, after] = [RECIPES[at - 1], RECIPES[at + 1]];
  return html`<nav class="neighbours" aria-label="Other recipes">
${before && html`<a href="/recipes/${before.name}" rel="prev">← ${before.title}</a>`}
${after && html`<a href="/recipes/${after.name}" rel="next">${after.title} →</a>`}
</nav>`;
}
