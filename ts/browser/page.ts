/** The one place where the pages' scripts look for elements and write HTML. */
import type { Html } from '../src/dashboard/html.ts';

/**
 * Returns the first element in `root` that matches.
 * @throws Error when there is none: page and script are not of one build
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

/** Puts HTML into an element, unless it is what was put there last. */
export function fill(element: Element, content: Html): void {
  if (latest.get(element) === content.text) return;
  latest.set(element, content.text);
  draw(element, content);
}

/** Puts HTML into an element in which people may have typed since. */
export function draw(element: Element, content: Html): void {
  element.innerHTML = content.text;
}

const latest = new WeakMap<Element, string>();

/** Puts a text into an element. One that stays the same is left alone: screen readers read what is touched. */
export function write(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
