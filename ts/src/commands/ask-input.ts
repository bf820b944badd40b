/** The inputs of `svc ask`: requests and states from arguments, files and stdin. */
import { readFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { errorCode } from '../files/system-error.ts';
import { tell } from '../log/tell.ts';
import { Refusal } from '../refusal.ts';

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

/** Returns the name by which messages call an input. */
export function inputName(file: string): string {
  return file === '-' ? 'stdin' : file;
}

/**
 * Returns the bytes of the file, or of stdin for `-`, without a byte order mark. On a terminal, a line says what is
 * waited for.
 *
 * @param what - The input as that line calls it, such as `the request`.
 * @throws Refusal when the file cannot be read.
 */
export async function readInput(file: string, what: string): Promise<Buffer> {
  if (file === '-' && process.stdin.isTTY) {
    const end = process.platform === 'win32' ? 'Ctrl-Z and Enter end' : 'Ctrl-D on a line of its own ends';
    tell(`type ${what}; ${end} it`);
  }
  try {
    const bytes = file === '-' ? await buffer(process.stdin) : readFileSync(file);
    return bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
      ? bytes.subarray(BYTE_ORDER_MARK.length)
      : bytes;
  } catch (error) {
    throw new Refusal(`${inputName(file)}: cannot be read (${errorCode(error)})`);
  }
}

/**
 * Returns the state as JSON text: the text of a `.json` file as it is, any other text as a string.
 *
 * @param state - A text, `@FILE`, or `-` for stdin.
 * @throws Refusal when the file cannot be read, is not UTF-8, or is not JSON although its name ends so.
 */
export async function stateJson(state: string): Promise<string> {
  const file = state === '-' ? state : /^@(.+)$/s.exec(state)?.[1];
  if (file === undefined) return JSON.stringify(state);
  const text = utf8Text(file, await readInput(file, 'the state'));
  if (!file.endsWith('.json')) return JSON.stringify(text);
  requireJson(file, text);
  return text;
}

/**
 * Requires that `text` is a JSON value. It becomes a part of the request, so any other text could end the state and go
 * on with other members.
 *
 * @throws Refusal when it is not valid JSON.
 */
function requireJson(file: string, text: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new Refusal(`${file}: is not valid JSON`);
  }
}

function utf8Text(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Refusal(`${inputName(file)}: is not UTF-8`);
  }
}
