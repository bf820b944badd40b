/** HTML as a value of its own, so that text never becomes markup by mistake. It runs in the server and in the browser. */

/** Text that is HTML already. Only {@link html} makes it. */
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

/** What a template takes: HTML as it is, text and numbers escaped, lists item by item, nothing for what is not there. */
export type Part = Html | string | number | undefined | null | false | readonly Part[];

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Returns the HTML of a template. Attribute values must stand in quotes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + write(parts[index - 1]) + string));
}

function write(part: Part): string {
  if (part === undefined || part === null || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(write).join('');
  return String(part).replace(/[&<>"']/g, (character) => ESCAPED[character] ?? '');
}
