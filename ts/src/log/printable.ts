/** The form in which text from others may stand in a terminal or in a log for people. */

/**
 * The characters that a terminal may take for a command (line breaks included), and those that change how the text
 * around them is read: they reverse its direction, or are invisible.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Returns the text in one line, with an escape such as `\u202e` in place of each such character. */
export function printable(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** Returns the same for a text that has lines of its own: its line breaks stay. */
export function printableLines(text: string): string {
  return text.replace(UNSEEN, (character) => (character === '\n' ? character : escaped(character)));
}

/** Returns the same for a text of JSON, which spells characters beyond four hexadecimal digits differently. */
export function printableJson(json: string): string {
  const unit = (text: string, index: number) => `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`;
  return json.replace(UNSEEN, (character) =>
    [...character.split('').keys()].map((index) => unit(character, index)).join(''),
  );
}

function escaped(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`;
}
