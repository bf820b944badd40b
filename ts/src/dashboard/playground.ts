/**
 * The playground before the browser fills it: the frame of the form, the place for the answer, and the request as code.
 */
import { type Html, html } from './html.ts';
import { RECIPES } from './recipes/index.ts';

interface PlaygroundOptions {
  readonly origin: string;
  readonly needsKey: boolean;
}

/** Returns the section. The elements that the browser's script uses have a `data-` attribute. */
export function playground({ origin, needsKey }: PlaygroundOptions): Html {
  return html`<section class="card playground" id="playground" aria-labelledby="playground-title" data-playground data-origin="${origin}"${
    needsKey && html` data-needs-key`
  }>
  <div class="card-head">
    <h2 id="playground-title">Playground</h2>
    <label class="recipe-choice" data-needs-script hidden>Start from <select data-recipe>${RECIPES.map(
      ({ name, title }) => html`<option value="${name}">${title}</option>`,
    )}</select></label>
  </div>
  <noscript><p class="note">The playground needs JavaScript. The line under “Call it” does the same from a terminal.</p></noscript>
  <div class="play" data-needs-script hidden>
    ${requestSide()}
    ${answerSide()}
  </div>
</section>`;
}

function requestSide(): Html {
  return html`<form class="request" id="playground-form" data-form novalidate>
  <div class="card-head">
    <h3>Request</h3>
    <fieldset class="segments"><legend class="unseen">How to edit the request</legend>
      <label><input type="radio" name="view" value="form" checked><span>Form</span></label>
      <label><input type="radio" name="view" value="json"><span>JSON</span></label>
    </fieldset>
  </div>
  <p class="note warn" role="alert" data-view-note hidden></p>
  <div data-view="form">
    <div class="field">
      <div class="card-head"><label for="state">State</label>
        <fieldset class="segments small"><legend class="unseen">What the state is</legend>
          <label><input type="radio" name="state-kind" value="text" checked><span>Text</span></label>
          <label><input type="radio" name="state-kind" value="json"><span>JSON</span></label>
        </fieldset></div>
      <textarea id="state" name="state" rows="5" spellcheck="false"></textarea>
    </div>
    <div data-questions></div>
    <button type="button" class="quiet" data-action="add-question">Add a question</button>
  </div>
  <div data-view="json" hidden>
    <label class="field" for="request-json"><span class="unseen">Request as JSON</span></label>
    <textarea id="request-json" class="code" rows="22" spellcheck="false"></textarea>
  </div>
  <div class="field" data-key hidden>
    <label for="api-key">API key</label>
    <input id="api-key" type="password" autocomplete="off" spellcheck="false">
  </div>
</form>`;
}

function answerSide(): Html {
  return html`<div class="reply">
  <div class="card-head reply-head"><h3>Answer</h3>
    <p><kbd class="muted">Ctrl + Enter</kbd> <button type="submit" form="playground-form" class="button primary" data-decide>Decide</button></p></div>
  <p class="unseen" role="status" data-said></p>
  <p class="error" role="alert" data-error hidden></p>
  <div data-answer><p class="empty">Press “Decide” to ask the model.</p></div>
  <details class="raw" data-raw hidden><summary>As the server sent it</summary><pre tabindex="0" role="region" aria-label="The answer as JSON"></pre></details>
  <h3>This request as code</h3>
  <div data-code></div>
  <p class="share"><button type="button" class="quiet" data-share>Copy a link to this request</button>
    <span class="muted" role="status" data-shared></span></p>
  <label class="unseen" for="share-link">Link to this request</label>
  <input id="share-link" readonly hidden>
</div>`;
}
