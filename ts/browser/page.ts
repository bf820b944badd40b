/** The only module in which the pages' scripts look for elements and write HTML. */
import type { Html } from '../src/dashboard/html.ts';

/**
 * Returns the first element in `root` that matches.
 *
 * @throws Error when there is none: the page and the script are of different builds
 */
export function find<Found extends Element = HTMLElement>(root: ParentNode, selector: string): Found {
  const found = root.querySelector<Found>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}

/** Returns all elements in `root` that match. */
export function findAll<Found extends Element = HTMLElement>(root: ParentNode, selector: string): Found[] {
  return [...root.querySelectorAll<Found>(selector)];
}

/** Puts HTML into an element, unless it is the HTML that was last put there. */
export function fill(element: Element, content: Html): void {
  if (latest.get(element) === content.text) return;
  latest.set(element, content.text);
  draw(element, content);
}

/** Puts HTML into an element whose contents the user may have changed since the last time. */
export function draw(element: Element, content: Html): void {
  element.innerHTML = content.text;
}

const latest = new WeakMap<Element, string>();

/**
 * Puts a text into an element. An unchanged text is not written again, because screen readers read every change aloud.
 */
export function write(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
