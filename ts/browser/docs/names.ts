/** Names and keys for parts of Swagger UI that it leaves without: a screen reader or a keyboard needs them. */

/** Attributes, with their values or what makes them for a part. */
type Attributes = Readonly<Record<string, string | ((part: Element) => string)>>;

/** The parts, by their selectors, with the attributes that they lack. */
const LACKING: Readonly<Record<string, Attributes>> = {
  'select#servers': { 'aria-label': 'Server' },
  '[data-param-name] select': { 'aria-label': (part) => nameIn(part, '[data-param-name]', 'data-param-name') },
  // Each of these is a landmark, and they need different names.
  '.responses-table': { 'aria-label': (part) => `Responses of ${nameIn(part, '.opblock', 'id')}` },
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

function addMissing(part: Element, attributes: Attributes): void {
  for (const [attribute, value] of Object.entries(attributes)) {
    if (part.hasAttribute(attribute)) continue;
    part.setAttribute(attribute, typeof value === 'string' ? value : value(part));
  }
}

/** Returns an attribute of the part that a part lies in. */
function nameIn(part: Element, around: string, attribute: string): string {
  return part.closest(around)?.getAttribute(attribute) ?? '';
}
