/** JSON as text, so that members keep their order and numbers their spelling. */
import { type Node, parseTree } from 'jsonc-parser';
import { LazyJson, LazyText } from './parquet/lazy.ts';

/** Whether a text is one JSON value. */
export function isJson(text: string): boolean {
  return parsedJson(text) !== undefined;
}

/** Returns the value of a JSON text; undefined if the text is not one JSON value. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the text of an object with these names and JSON texts of values, in this order. */
export function objectText(members: readonly (readonly [name: string, json: string])[]): string {
  return `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`;
}

/**
 * Returns the members of the object in `json`, each value's text exactly as written; the last one counts if a name
 * stands twice. Undefined if `json` is not an object.
 */
export function memberTexts(json: string): ReadonlyMap<string, string> | undefined {
  const root = parseTree(json);
  if (root?.type !== 'object') return undefined;
  return new Map((root.children ?? []).map((member) => memberEntry(json, member)));
}

function memberEntry(json: string, { children }: Node): [string, string] {
  const [name, value] = children ?? [];
  return [String(name?.value), value ? json.slice(value.offset, value.offset + value.length) : 'null'];
}

/**
 * Returns the JSON text of a value read from a Parquet file: big integers in full, bytes as base64, times in ISO 8601.
 */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'bigint') return String(value);
  if (value instanceof LazyJson) return valueText(JSON.parse(value.toString()));
  if (value instanceof LazyText) return JSON.stringify(value.toString());
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'));
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'null' : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(valueText).join(',')}]`;
  if (ArrayBuffer.isView(value)) return valueText(Array.from(value as unknown as Iterable<unknown>));
  if (typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  return objectText(Object.entries(value).map(([name, inner]) => [name, valueText(inner)]));
}
