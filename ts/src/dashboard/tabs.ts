/** Texts to copy: one below the other without a script, as tabs with one. */
import { type Html, html } from './html.ts';
import type { Snippet } from './snippets.ts';

/** Returns the snippets, each under its name. */
export function snippetTabs(snippets: readonly Snippet[]): Html {
  return html`<div class="tabs" data-tabs>${snippets.map(
    ({ name, text }) => html`<section data-tab="${name}"><h4>${name}</h4>
<div class="snippet"><pre tabindex="0" role="region" aria-label="${name}">${text}</pre></div></section>`,
  )}</div>`;
}
