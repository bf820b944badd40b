/** One member of a JSON object as it is written: reading and writing it would move names and spell numbers anew. */
import { findNodeAtLocation, parseTree } from 'jsonc-parser';

/** Returns the text of the value that the object `json` has under `name`; undefined where there is none. */
export function memberText(json: string, name: string): string | undefined {
  const root = parseTree(json);
  const value = root && findNodeAtLocation(root, [name]);
  return value && json.slice(value.offset, value.offset + value.length);
}
