/** Names and keys for parts of Swagger UI that it leaves without: a screen reader or a keyboard needs them. */

/** The parts, by their selectors, with the attributes that they lack. */
const LACKING: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'select#servers': { 'aria-label': 'Server' },
  'select.examples-select-element': { 'aria-label': 'Example' },
  'textarea.body-param__text': { 'aria-label': 'Request body' },
  'pre.microlight': { tabindex: '0' },
  '.information-container': { role: 'region', 'aria-label': 'About the API' },
  '.schemes-server-container': { role: 'region', 'aria-label': 'Servers' },
  // The heading of the page is of the first level, and each of these follows the one before it.
  'h3.opblock-tag': { 'aria-level': '2' },
  'section.models h4': { 'aria-level': '2' },
  '.opblock h4': { 'aria-level': '3' },
  '.opblock h5': { 'aria-level': '4' },
};

/** Gives the attributes to the parts that are in `root` now, and to those that come later. */
export function nameForEverybody(root: Element): void {
  const name = () => {
    for (const [selector, attributes] of Object.entries(LACKING)) {
      for (const part of root.querySelectorAll(selector)) addMissing(part, attributes);
    }
  };
  new MutationObserver(name).observe(root, { childList: true, subtree: true });
}

function addMissing(part: Element, attributes: Readonly<Record<string, string>>): void {
  for (const [attribute, value] of Object.entries(attributes)) {
    if (!part.hasAttribute(attribute)) part.setAttribute(attribute, value);
  }
}
