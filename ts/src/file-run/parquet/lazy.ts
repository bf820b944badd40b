/** Values that stay bytes of their page until their row is written, so that a page costs little more than its bytes. */

const DECODER = new TextDecoder();

export class LazyText {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** Also called when the value is the key of a map. */
  toString(): string {
    return DECODER.decode(this.bytes);
  }
}

export class LazyJson extends LazyText {}

/** Whether the value takes more than `maxBytes` as JSON, by a lower bound; lazy values are not decoded for it. */
export function isLarger(value: unknown, maxBytes: number): boolean {
  return bytesLeft(value, maxBytes) < 0;
}

function bytesLeft(value: unknown, before: number): number {
  if (value instanceof LazyText) return before - value.bytes.length;
  if (value instanceof Uint8Array) return before - (value.length * 4) / 3;
  if (typeof value !== 'object' || value === null) return before - 1;
  let left = before - 2;
  // The indexes of an array are numbers, which are not written.
  for (const [name, inner] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    left = bytesLeft(inner, left - (typeof name === 'string' ? name.length + 4 : 1));
    if (left < 0) break;
  }
  return left;
}
