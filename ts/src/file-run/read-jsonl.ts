/** JSON lines: every line that is not blank is a row. */
import { type ByteInput, openFile, shareBefore } from './byte-input.ts';
import { isJson, memberTexts, objectText } from './json-text.ts';
import { lines } from './lines.ts';
import { badRow, type Position, type Row, type Selection, type Source } from './row.ts';

/** The number of characters that the file of errors shows of a line that is not JSON. */
const SHOWN_CHARACTERS = 1000;

interface JsonlOptions extends Selection {
  readonly path: string;
  /** The bytes of the file, if they are not read from `path`. */
  readonly input?: ByteInput | undefined;
  /** The longest row, in bytes; a longer line is a bad row and is not held in memory. */
  readonly maxRowBytes: number;
}

/** Opens the file as a source whose rows have the numbers of their lines. */
export async function openJsonl(options: JsonlOptions): Promise<Source> {
  const input = options.input ?? (await openFile(options.path));
  const isKept = options.keep === undefined || options.keep.length > 0;
  return {
    columns: isKept ? [{ name: 'input', type: 'json' }] : [],
    rows: (from) => rows({ ...options, input }, from),
    share: ({ offset }) => shareBefore(input, offset),
    fingerprint: ({ offset }) => input.fingerprint(offset),
    close: () => input.close(),
  };
}

async function* rows(options: JsonlOptions, from: Position): AsyncGenerator<Row> {
  let number = from.row;
  const { path, input, maxRowBytes } = options;
  for await (const { bytes, end } of lines({ path, input, from: from.offset, maxBytes: maxRowBytes })) {
    number += 1;
    const row =
      bytes?.length === 0 ? undefined : lineRow(options, { number, bytes, end: { row: number, offset: end } });
    if (row) yield row;
  }
}

interface NumberedLine {
  readonly number: number;
  readonly bytes: Buffer | undefined;
  readonly end: Position;
}

/** Returns the row of a line; undefined if the line is blank. */
function lineRow(options: JsonlOptions, { number, bytes, end }: NumberedLine): Row | undefined {
  const lost = { number, end, inputJson: () => 'null' };
  if (bytes === undefined) return badRow(lost, `row larger than ${options.maxRowBytes} bytes (max_body_bytes)`);
  const text = utf8(bytes)?.trim();
  if (text === '') return undefined;
  if (text === undefined) return badRow(lost, 'not UTF-8');
  const shown = { number, end, inputJson: () => JSON.stringify(text.slice(0, SHOWN_CHARACTERS)) };
  // The text becomes a part of the request: a text that is not one JSON value could close the `state` and add other
  // fields.
  if (!isJson(text)) return badRow(shown, 'not valid JSON');
  return selectedRow(options, { number, end, inputJson: () => text }, text);
}

function selectedRow(
  { state, keep }: JsonlOptions,
  read: Omit<Row & { problem?: undefined }, 'stateJson' | 'cells'>,
  text: string,
): Row {
  if (state.length === 0 && keep === undefined) return { ...read, stateJson: text, cells: [text] };
  const members = memberTexts(text);
  const missing = state.find((name) => !members?.has(name));
  if (missing !== undefined) return badRow(read, `no field ${JSON.stringify(missing)}`);
  const picked = (names: readonly string[]) => names.map((name) => [name, members?.get(name) ?? 'null'] as const);
  const [first, ...others] = picked(state);
  const stateJson = first === undefined ? text : others.length === 0 ? first[1] : objectText([first, ...others]);
  const cells = keep === undefined ? [text] : keep.length === 0 ? [] : [objectText(picked(keep))];
  return { ...read, stateJson, cells };
}

const DECODER = new TextDecoder('utf-8', { fatal: true });

/** Returns the text of the bytes, without a byte order mark; undefined if they are not UTF-8. */
function utf8(bytes: Buffer): string | undefined {
  try {
    return DECODER.decode(bytes);
  } catch {
    return undefined;
  }
}
