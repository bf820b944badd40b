/** Text of others as it may stand in a terminal or in a log for people. */

/**
 * What a terminal may take for a command (a line break among it), and what changes how the text around it is read: it
 * turns its direction round, or is not seen at all.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** The text in one line, with `\u202e` in place of what is not to be seen. */
export function printable(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** The same of text that has lines of its own. */
export function printableLines(text: string): string {
  return text.replace(UNSEEN, (character) => (character === '\n' ? character : escaped(character)));
}

/** The same of a text of JSON, which has another spelling for what is beyond four digits. */
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
