/** One number with its name above and further details below. */
import { type Html, html } from './html.ts';

/** Returns an entry of a `dl` with the class `tiles`. */
export function tile(label: string, value: Html, more: Html): Html {
  return html`<div class="tile"><dt>${label}</dt><dd class="value">${value}</dd><dd class="more">${more}</dd></div>`;
}
