/** Contents that are larger than a test wants to have in memory. */
import { createHash } from 'node:crypto';

const BLOCK_BYTES = 2 ** 20;

/** The content of a file, which can be read from any byte on. */
export interface Content {
  readonly bytes: number;
  readonly sha256: string;
  from(first: number): Iterable<Buffer>;
}

/** Returns a content of `blocks` MiB, of which no two blocks are the same. */
export function largeContent(blocks: number): Content {
  const block = (index: number) => {
    const bytes = Buffer.alloc(BLOCK_BYTES, index % 251);
    bytes.writeUInt32BE(index);
    return bytes;
  };
  const from = function* (first: number) {
    let index = Math.floor(first / BLOCK_BYTES);
    if (index < blocks) yield block(index).subarray(first % BLOCK_BYTES);
    for (index += 1; index < blocks; index += 1) yield block(index);
  };
  const hash = createHash('sha256');
  for (const bytes of from(0)) hash.update(bytes);
  return { bytes: blocks * BLOCK_BYTES, sha256: hash.digest('hex'), from };
}

/** Returns the content that is in memory. */
export function smallContent(text: string | Buffer): Content & { readonly buffer: Buffer } {
  const buffer = Buffer.from(text);
  const sha256 = createHash('sha256').update(buffer).digest('hex');
  return { bytes: buffer.length, sha256, from: (first) => [buffer.subarray(first)], buffer };
}
