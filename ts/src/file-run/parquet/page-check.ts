/**
 * Checks of a page's header and levels before the page is decoded: hyparquet trusts counts and lengths, and a wrong one
 * costs memory and time without end, or exposes bytes of other data.
 */
import type { ColumnMetaData, PageHeader } from 'hyparquet';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js';
import { Damage } from './damage.ts';

type DataPageHeaderV2 = NonNullable<PageHeader['data_page_header_v2']>;

/** The known facts about the values of a page. */
interface ValuesCheck {
  readonly encoding: string | undefined;
  readonly type: ColumnMetaData['type'];
  /** The number of bytes of one value of a fixed length; 0 if there is no such length. */
  readonly typeLength: number;
  /** The number of values without the nulls. */
  readonly count: number;
}

const WIDTHS: Readonly<Record<string, number>> = { INT32: 4, FLOAT: 4, INT64: 8, DOUBLE: 8, INT96: 12 };

/** The memory of one text or byte array, which is an object of its own. */
const BYTES_PER_OBJECT = 200;
const BYTES_PER_VALUE = 24;

/**
 * Returns the number of bytes that the decoded values take besides the page itself.
 *
 * @throws Damage when the values cannot be in `bytes`.
 */
export function checkValues(bytes: Uint8Array, check: ValuesCheck): number {
  const { encoding, type, count } = check;
  const isText = type === 'BYTE_ARRAY' || type === 'FIXED_LEN_BYTE_ARRAY';
  const cost = count * (isText && !encoding?.endsWith('DICTIONARY') ? BYTES_PER_OBJECT : BYTES_PER_VALUE);
  switch (encoding) {
    case 'PLAIN':
      if (type === 'BYTE_ARRAY') checkTexts(bytes, count);
      else checkPlain(bytes, check);
      return cost;
    case 'PLAIN_DICTIONARY':
    case 'RLE_DICTIONARY':
      if (count > 0) checkHybrid(bytes, { start: 1, width: bytes[0] ?? 255, count });
      return cost;
    case 'RLE':
      if (type !== 'BOOLEAN') break;
      checkHybrid(bytes, { start: 4, width: 1, count });
      return cost;
    case 'BYTE_STREAM_SPLIT':
      requireBytes(bytes, count * (type === 'FIXED_LEN_BYTE_ARRAY' ? check.typeLength : (WIDTHS[type] ?? Infinity)));
      return cost;
    case 'DELTA_BINARY_PACKED':
      if (type !== 'INT32' && type !== 'INT64') break;
      checkDelta(bytes, { start: 0, count });
      return cost;
    case 'DELTA_LENGTH_BYTE_ARRAY':
    case 'DELTA_BYTE_ARRAY':
      if (isText) return cost + checkDeltaTexts(bytes, check);
  }
  throw new Damage(`a page has the encoding ${encoding ?? 'of no name'} for the type ${type}`);
}

function checkPlain(bytes: Uint8Array, { type, typeLength, count }: ValuesCheck): void {
  if (type === 'FIXED_LEN_BYTE_ARRAY' && typeLength <= 0) throw new Damage('values of a fixed length have none');
  const width = type === 'FIXED_LEN_BYTE_ARRAY' ? typeLength : (WIDTHS[type] ?? Infinity);
  requireBytes(bytes, type === 'BOOLEAN' ? Math.ceil(count / 8) : count * width);
}

function checkTexts(bytes: Uint8Array, count: number): void {
  const view = viewOf(bytes);
  let at = 0;
  for (let left = count; left > 0; left -= 1) {
    requireBytes(bytes, at + 4);
    at += 4 + view.getUint32(at, true);
  }
  requireBytes(bytes, at);
}

interface HybridCheck {
  readonly start: number;
  /** The number of bits of a value. */
  readonly width: number;
  readonly count: number;
}

/** Checks runs of equal values and of bit-packed values, the form of levels and of dictionary indexes. */
function checkHybrid(bytes: Uint8Array, { start, width, count }: HybridCheck): void {
  if (width > 32) throw new Damage(`a page has values of ${width} bits`);
  let at = start;
  for (let seen = 0; seen < count; ) {
    const { value: head, end } = varint(bytes, at);
    const isPacked = head % 2 === 1;
    const run = Math.floor(head / 2) * (isPacked ? 8 : 1);
    at = end + (isPacked ? Math.floor(head / 2) * width : Math.ceil(width / 8));
    // The last bit-packed values are padded to a multiple of eight; a run of equal values is exactly as long as it
    // says.
    if (run === 0 ? end >= bytes.length : run > count - seen + (isPacked ? MAX_PADDING : 0)) {
      throw new Damage('a page has more values than it says');
    }
    seen += run;
  }
  requireBytes(bytes, Math.min(at, bytes.length + MAX_PADDING) - MAX_PADDING);
}

/** The largest number of values with which a writer may pad the last bit-packed run. */
const MAX_PADDING = 512;

function checkDelta(bytes: Uint8Array, { start, count }: { readonly start: number; readonly count: number }): void {
  if (count === 0) return;
  const block = varint(bytes, start);
  const miniblocks = varint(bytes, block.end);
  const total = varint(bytes, miniblocks.end);
  const each = block.value / miniblocks.value;
  const isSound = block.value <= 2 ** 16 && Number.isInteger(each) && each >= 8 && each % 8 === 0;
  if (!isSound || total.value < count) throw new Damage('a page has blocks of values that cannot be');
}

/**
 * Returns the number of bytes of the decoded texts: texts that share their beginnings in the page are each stored whole
 * in memory.
 */
function checkDeltaTexts(bytes: Uint8Array, { encoding, count }: ValuesCheck): number {
  if (count === 0) return 0;
  const reader = { view: viewOf(bytes), offset: 0 };
  const lengths = (): Int32Array => {
    checkDelta(bytes, { start: reader.offset, count });
    const values = new Int32Array(count);
    deltaBinaryUnpack(reader, count, values);
    return values;
  };
  const shared = encoding === 'DELTA_BYTE_ARRAY' ? lengths() : new Int32Array(count);
  const own = lengths();
  let [before, ownBytes, allBytes] = [0, 0, 0];
  for (let at = 0; at < count; at += 1) {
    const [prefix = 0, suffix = 0] = [shared[at], own[at]];
    if (prefix < 0 || suffix < 0 || prefix > before) throw new Damage('a page has texts of a length that cannot be');
    before = prefix + suffix;
    ownBytes += suffix;
    allBytes += before;
  }
  requireBytes(bytes, reader.offset + ownBytes);
  return allBytes;
}

export interface LevelsCheck {
  readonly maxRepetition: number;
  readonly maxDefinition: number;
}

/** The result of reading a page's levels. */
export interface PageLevels {
  /** The byte offset at which the values begin. */
  readonly end: number;
  /** The number of values without the nulls. */
  readonly present: number;
}

/**
 * Checks the levels in front of a page's values, each with its length before it.
 *
 * @throws Damage when they cannot be the levels of `count` values.
 */
export function checkLevels(bytes: Uint8Array, count: number, levels: LevelsCheck): PageLevels {
  let at = 0;
  const next = (max: number): number => {
    if (max === 0) return count;
    requireBytes(bytes, at + 4);
    const length = viewOf(bytes).getUint32(at, true);
    requireBytes(bytes, at + 4 + length);
    const present = countLevels(bytes.subarray(at + 4, at + 4 + length), { max, count });
    at += 4 + length;
    return present;
  };
  next(levels.maxRepetition);
  const present = next(levels.maxDefinition);
  return { end: at, present };
}

/** Checks the levels of a page of the second version, whose header holds the lengths of its levels. */
export function checkLevelsV2(bytes: Uint8Array, v2: DataPageHeaderV2, levels: LevelsCheck): PageLevels {
  const { num_values, num_nulls, num_rows } = v2;
  const count = atLeast(0, num_values);
  const repetition = atLeast(0, v2.repetition_levels_byte_length);
  const end = repetition + atLeast(0, v2.definition_levels_byte_length);
  requireBytes(bytes, end);
  const { maxRepetition, maxDefinition } = levels;
  if (maxRepetition > 0) countLevels(bytes.subarray(0, repetition), { max: maxRepetition, count });
  const present =
    maxDefinition > 0 ? countLevels(bytes.subarray(repetition, end), { max: maxDefinition, count }) : count;
  const isSound = atLeast(0, num_rows) <= count && atLeast(0, num_nulls) === count - present;
  if (!isSound) throw new Damage('a page has counts that cannot be');
  return { end, present };
}

/** Returns the number of levels that equal `max`. */
function countLevels(bytes: Uint8Array, { max, count }: { readonly max: number; readonly count: number }): number {
  const width = 32 - Math.clz32(max);
  checkHybrid(bytes, { start: 0, width, count });
  const values = new Uint8Array(count);
  readRleBitPackedHybrid({ view: viewOf(bytes), offset: 0 }, width, values, bytes.length);
  let highest = 0;
  for (const value of values) {
    if (value > max) throw new Damage('a page has levels that cannot be');
    if (value === max) highest += 1;
  }
  return highest;
}

/**
 * Returns `value` as a number.
 *
 * @throws Damage when `value` is not a whole number of at least `least`.
 */
export function atLeast(least: number, value: number | bigint | undefined): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= least) return number;
  throw new Damage('its header has a number that cannot be');
}

function requireBytes(bytes: Uint8Array, count: number): void {
  if (count > bytes.length) throw new Damage('a page is cut short');
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function varint(bytes: Uint8Array, start: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let read = 0; read < 5; read += 1) {
    const byte = bytes[start + read];
    if (byte === undefined) throw new Damage('a page is cut short');
    value += (byte & 127) * 2 ** (7 * read);
    // The decoder reads 31 bits only.
    if (byte < 128 && value < 2 ** 31) return { value, end: start + read + 1 };
  }
  throw new Damage('a page has a number that cannot be');
}
