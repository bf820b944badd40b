/** The card of a model: the `README.md` of its repository, whose first lines are data about it. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';

export const CARD_FILE = 'README.md';
/** The longest card that is fetched, in bytes. */
export const MAX_CARD_BYTES = 2 ** 20;
/** The part of a card that is read, in bytes: the data stands in front, in a few lines. */
const HEAD_BYTES = 64 * 2 ** 10;
const MAX_LICENCE_CHARS = 100;

/** Returns the licence that the card in a folder names; undefined when there is no card, or none in it. */
export async function licenceIn(folder: string): Promise<string | undefined> {
  const file = await open(join(folder, CARD_FILE)).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(HEAD_BYTES) });
    return licenceOf(buffer.toString('utf8', 0, bytesRead));
  } finally {
    await file.close();
  }
}

/** Returns the licence in the text of a card. A licence of its own has a name besides `other`. */
export function licenceOf(card: string): string | undefined {
  const data = /^\uFEFF?---\r?\n(.*?)^---\s*$/ms.exec(card)?.[1];
  if (data === undefined) return undefined;
  const [licence, name] = ['license', 'license_name'].map((key) => scalar(data, key));
  const told = licence === 'other' && name !== undefined ? name : licence;
  return told?.slice(0, MAX_LICENCE_CHARS);
}

/** Returns the value of a key at the beginning of a line of YAML: a text, or the items of a list. */
function scalar(data: string, key: string): string | undefined {
  const form = new RegExp(`^${key}:[ \\t]*(?<value>[^\\r\\n]*)(?<items>(?:\\r?\\n[ \\t]*-[ \\t].*)*)`, 'm');
  const { value = '', items = '' } = form.exec(data)?.groups ?? {};
  const texts = value === '' ? items.split(/\r?\n[ \t]*-[ \t]/) : value.replace(/^\[|\]$/g, '').split(',');
  return texts.map(unquoted).filter(Boolean).join(', ') || undefined;
}

function unquoted(text: string): string {
  return text
    .replace(/ #.*$/, '')
    .trim()
    .replace(/^(["'])(.*)\1$/, '$2');
}
