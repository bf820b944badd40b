/** One member of a JSON object as it is written: parsing and writing it again would move names and respell numbers. */
import { findNodeAtLocation, parseTree } from 'jsonc-parser';

/** Returns the text of the value that the object `json` has under `name`; undefined where there is none. */
export function memberText(json: string, name: string): string | undefined {
  const root = parseTree(json);
  const value = root && findNodeAtLocation(root, [name]);
  return value && json.slice(value.offset, value.offset + value.length);
}
