/** Adds to an `svc.json` what a release wants to be seen there, and leaves the rest of the file as its user wrote it. */
import { chmodSync, chownSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { applyEdits, type Node, parseTree } from 'jsonc-parser';
import { newSettings, parseObject, writeNewSettings } from './config.ts';
import { errorCode, temporaryPath } from './exclusive-file.ts';
import { Refusal } from './refusal.ts';

const BYTE_ORDER_MARK = '\uFEFF';

/**
 * The keys that the file now has and had not, of `listen` and `device`: both where there was no file, which is then made
 * as the server's first start makes it. A value of the user's is never changed; order, spaces, line ends, mode and owner
 * stay as they are, and a link stays a link.
 *
 * @param path - Absolute path of the `svc.json`.
 * @throws Refusal when the file is no JSON object, or cannot be read or written.
 */
export function addMissing(path: string): readonly string[] {
  try {
    if (writeNewSettings(path)) return Object.keys(newSettings());
  } catch (error) {
    // A folder that cannot be written may hold a file that lacks nothing.
    if (errorCode(error) === '') throw error;
  }
  const text = readText(path);
  const json = text.replace(BYTE_ORDER_MARK, '');
  const present = parseObject(basename(path), json);
  const missing = Object.entries(newSettings()).filter(([key]) => !Object.hasOwn(present, key));
  if (missing.length === 0) return [];
  replaceText(path, text.slice(0, text.length - json.length) + withSettings(json, missing));
  return missing.map(([key]) => key);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Refusal(`${path}: cannot be read (${errorCode(error)})`);
  }
}

/**
 * The text with the settings behind those that are there, set apart as the last of these is. jsonc-parser's own edits
 * would format the whole line that they touch, which may be all of the file.
 */
function withSettings(text: string, settings: readonly (readonly [string, unknown])[]): string {
  const root = parseTree(text) as Node;
  const last = root.children?.at(-1);
  const [key, value] = last?.children ?? [];
  if (last === undefined || key === undefined || value === undefined) {
    const { offset, length } = root;
    return applyEdits(text, [{ offset, length, content: JSON.stringify(Object.fromEntries(settings), null, 2) }]);
  }
  const space = /\s*$/.exec(text.slice(0, last.offset))?.[0] ?? '';
  const colon = text.slice(key.offset + key.length, value.offset);
  const added = settings.map((setting) => `,${space}${setting.map((part) => JSON.stringify(part)).join(colon)}`);
  return applyEdits(text, [{ offset: last.offset + last.length, length: 0, content: added.join('') }]);
}

/** Nobody ever reads half a file: the text goes to one beside it, which then takes its name. */
function replaceText(link: string, text: string): void {
  let temporary: string | undefined;
  try {
    const path = realpathSync(link);
    const { mode, uid, gid } = statSync(path);
    temporary = temporaryPath(dirname(path));
    writeFileSync(temporary, text, { flag: 'wx', mode: 0o600 });
    const own = statSync(temporary);
    if (own.uid !== uid || own.gid !== gid) chownSync(temporary, uid, gid);
    chmodSync(temporary, mode);
    renameSync(temporary, path);
  } catch (error) {
    if (temporary !== undefined) rmSync(temporary, { force: true });
    if (errorCode(error) === '') throw error;
    throw new Refusal(`${link}: cannot be written (${errorCode(error)})`);
  }
}
