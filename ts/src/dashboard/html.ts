/**
 * HTML as a type of its own, so that text never becomes markup by mistake. The server and the browser both run this
 * code.
 */

/** Text that is HTML already. Only {@link html} creates it. */
class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

export type { Html };

/**
 * A value in a template: HTML is inserted as it is, text and numbers are escaped, lists are inserted item by item, and
 * undefined, null and false insert nothing.
 */
type Part = Html | string | number | undefined | null | false | readonly Part[];

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Returns the HTML of a template. Attribute values must stand in quotes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + partText(parts[index - 1]) + string));
}

function partText(part: Part): string {
  if (part === undefined || part === null || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(partText).join('');
  return String(part).replace(/[&<>"']/g, (character) => ESCAPED[character] ?? '');
}
