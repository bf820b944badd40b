/**
 * The bounds of a Thrift structure (compact protocol), found before it is read: hyparquet trusts the lengths in it, and
 * a list of 30 million elements, a number of a million bytes or an endless nesting cost memory and time.
 */
import { Damage } from './damage.ts';

/** This is deeper than any structure of the format. */
const MAX_DEPTH = 16;
const MAX_VARINT_BYTES = 10;

/** The error that the bytes end before the structure does; more bytes may help. */
export class CutShort extends Damage {}

/**
 * Returns the offset of the byte behind the structure that begins at `start`.
 *
 * @throws CutShort when the bytes end early; Damage when it is no structure of a Parquet file.
 */
export function structEnd(bytes: Uint8Array, start: number): number {
  return new Walk(bytes).struct(start, 0);
}

class Walk {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(start: number, depth: number): number {
    if (depth > MAX_DEPTH) throw new Damage('its header is nested too deep');
    let at = start;
    for (;;) {
      const head = this.#byte(at);
      at += 1;
      const type = head & 15;
      if (type === 0) return at;
      if (head >> 4 === 0) at = this.#varint(at).end;
      at = this.#element(type, at, depth);
    }
  }

  #element(type: number, at: number, depth: number): number {
    switch (type) {
      case 1:
      case 2:
        return at;
      case 3:
        return this.#inside(at + 1);
      case 4:
      case 5:
      case 6:
        return this.#varint(at).end;
      case 7:
        return this.#inside(at + 8);
      case 8: {
        const { value, end } = this.#varint(at);
        return this.#inside(end + value);
      }
      case 9:
        return this.#list(at, depth);
      case 12:
        return this.struct(at, depth + 1);
      default:
        throw new Damage(`its header has a field of type ${type}`);
    }
  }

  #list(start: number, depth: number): number {
    const head = this.#byte(start);
    const { value: count, end } = head >> 4 === 15 ? this.#varint(start + 1) : { value: head >> 4, end: start + 1 };
    // Each element has at least one byte.
    this.#inside(end + count);
    const type = head & 15;
    let at = end;
    // A boolean takes one byte in a list and none in a structure.
    for (let left = count; left > 0; left -= 1) at = this.#element(type === 1 || type === 2 ? 3 : type, at, depth + 1);
    return at;
  }

  #varint(start: number): { readonly value: number; readonly end: number } {
    let value = 0;
    for (let read = 0; read < MAX_VARINT_BYTES; read += 1) {
      const byte = this.#byte(start + read);
      value += (byte & 127) * 2 ** (7 * read);
      if (byte < 128) return { value, end: start + read + 1 };
    }
    throw new Damage('its header has a number that does not end');
  }

  #byte(at: number): number {
    const byte = this.#bytes[at];
    if (byte === undefined) throw new CutShort('its header is cut short');
    return byte;
  }

  #inside(end: number): number {
    if (end > this.#bytes.length) throw new CutShort('its header is cut short');
    return end;
  }
}
