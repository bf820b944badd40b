/** Decompression of pages, never to more bytes than their header says. */
import * as zlib from 'node:zlib';
import type { CompressionCodec } from 'hyparquet';
import { decompressLz4, decompressLz4Raw, decompressSnappy, decompressZstd } from 'hyparquet-compressors';
import { Damage } from './damage.ts';

type Decompress = (bytes: Uint8Array, length: number) => Uint8Array;

/** The decompressor that `node:zlib` has since Node 22.15; the types are those of the oldest supported Node. */
const { zstdDecompressSync } = zlib as unknown as { readonly zstdDecompressSync?: typeof zlib.unzipSync };

/**
 * The zlib options with one piece large enough for the whole output: Node would join several pieces, which takes twice
 * the memory.
 */
const room = (length: number) => ({ maxOutputLength: Math.max(1, length), chunkSize: Math.max(64, length + 1) });

const DECOMPRESS: Readonly<Partial<Record<CompressionCodec, Decompress>>> = {
  UNCOMPRESSED: (bytes) => bytes,
  GZIP: (bytes, length) => zlib.unzipSync(bytes, room(length)),
  BROTLI: (bytes, length) => zlib.brotliDecompressSync(bytes, room(length)),
  ZSTD: (bytes, length) => zstdDecompressSync?.(bytes, room(length)) ?? decompressZstd(bytes, new Uint8Array(length)),
  SNAPPY: (bytes, length) => {
    checkSnappy(bytes, length);
    return decompressSnappy(bytes, length);
  },
  LZ4: decompressLz4,
  LZ4_RAW: decompressLz4Raw,
};

/**
 * Returns the `length` bytes that were compressed to `bytes`.
 *
 * @throws Damage when they are more or fewer, or were not compressed with `codec`.
 */
export function decompress(codec: CompressionCodec | undefined, bytes: Uint8Array, length: number): Uint8Array {
  const work = codec === undefined ? undefined : DECOMPRESS[codec];
  if (work === undefined) throw new Damage(`its compression ${codec ?? ''} is not known`.replace('  ', ' '));
  if (length === 0) return new Uint8Array();
  const whole = decompressedPage(work, bytes, length);
  if (whole.length !== length) throw new Damage(`a page has ${whole.length} bytes, its header says ${length}`);
  return whole;
}

function decompressedPage(work: Decompress, bytes: Uint8Array, length: number): Uint8Array {
  try {
    return work(bytes, length);
  } catch (error) {
    throw error instanceof Damage ? error : new Damage('a page cannot be decompressed', { cause: error });
  }
}

/** Checks the lengths in a Snappy block. The decoder trusts them, and a negative one could make it loop forever. */
function checkSnappy(bytes: Uint8Array, length: number): void {
  let at = 0;
  while ((bytes[at] ?? 0) >= 128) at += 1;
  at += 1;
  let made = 0;
  while (at < bytes.length) {
    const tag = bytes[at] ?? 0;
    at += 1;
    if ((tag & 3) !== 0) {
      made += (tag & 3) === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
      at += [0, 1, 2, 4][tag & 3] ?? 0;
      continue;
    }
    const extra = Math.max(0, (tag >> 2) - 59);
    let literal = tag >> 2;
    if (extra > 0) literal = 0;
    for (let byte = 0; byte < extra; byte += 1) literal += (bytes[at + byte] ?? 0) * 256 ** byte;
    made += literal + 1;
    at += extra + literal + 1;
  }
  if (at !== bytes.length || made !== length) throw new Damage('a page cannot be decompressed');
}
