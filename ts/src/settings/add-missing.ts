/** Adds to an `svc.json` the settings that a release wants to show there, and leaves the rest as its user wrote it. */
import { chmodSync, chownSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { applyEdits, type Node, parseTree } from 'jsonc-parser';
import { temporaryPath } from '../files/exclusive-file.ts';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';
import { newSettings, parseObject, writeNewSettings } from './config.ts';

const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Adds `listen` and `device` where the file lacks them, and returns the added keys: both where there was no file, which
 * is then made as the server's first start makes it. A value of the user is never changed; order, spaces, line ends,
 * mode and owner stay as they are, and a link stays a link.
 *
 * @param path - Absolute path of the `svc.json`.
 * @throws Refusal when the file is no JSON object, or cannot be read or written.
 */
export function addMissing(path: string): readonly string[] {
  try {
    if (writeNewSettings(path)) return Object.keys(newSettings());
  } catch (error) {
    // Even a folder that cannot be written may hold a file that lacks no key.
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
 * Returns the text with the settings added behind the existing ones, with the spacing of the last of these. The edits
 * of jsonc-parser itself would format the whole line that they touch, which may be all of the file.
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

/**
 * Replaces the text of a file. No reader ever sees half a file: the text goes to a file next to it, which then takes
 * its name.
 */
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
