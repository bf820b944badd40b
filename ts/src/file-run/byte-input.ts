/** The bytes of an input: of a file, which is read from any place, or of a stream, which is read once. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { fingerprintBefore, readPart } from './file-part.ts';

export interface ByteInput {
  /** The number of bytes; undefined for a stream, which may never end. */
  readonly size: number | undefined;
  /** Yields the bytes from the offset `from` on, in pieces of about `chunkBytes`. */
  chunks(from: number, chunkBytes: number): AsyncIterable<Buffer>;
  /** Returns the bytes from `start` to `end` (exclusive); of a stream, as far as they are still held. */
  part(start: number, end: number): Promise<Buffer>;
  /** Returns a digest that shows whether the bytes before `end` are still the same. */
  fingerprint(end: number): Promise<string>;
  close(): Promise<void>;
}

/** Opens a file. */
export async function openFile(path: string): Promise<ByteInput> {
  const file = await open(path);
  const { size } = await file.stat();
  return {
    size,
    chunks: (from, chunkBytes) => createReadStream(path, { start: from, highWaterMark: chunkBytes }),
    part: (start, end) => readPart(file, start, end),
    fingerprint: (end) => fingerprintBefore(file, end),
    close: () => file.close(),
  };
}

/** Returns the share of the input before an offset, from 0 to 1; always 0 for a stream, whose end nobody knows. */
export function shareBefore({ size }: ByteInput, offset: number): number {
  if (size === undefined) return 0;
  return size === 0 ? 1 : offset / size;
}

/**
 * Returns the input of a stream. Its last `heldBytes` bytes are held, so that the beginning can be read twice and the
 * bytes of a row can be looked at again.
 */
export function streamInput(stream: Readable, heldBytes: number): ByteInput {
  const pieces: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
  const held = new HeldBytes(heldBytes);
  return {
    size: undefined,
    async *chunks(from) {
      if (from < held.end) yield held.slice(from, held.end);
      for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
        held.append(next.value);
        yield next.value;
      }
    },
    part: async (start, end) => held.slice(start, end),
    // A stream cannot be read again, so nobody asks whether it is still the same.
    fingerprint: async () => '',
    async close() {
      stream.destroy();
    },
  };
}

/** The last bytes of a stream, by their offsets. */
class HeldBytes {
  readonly #mostBytes: number;
  #pieces: Buffer[] = [];
  #start = 0;
  #end = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** The number of bytes that the stream has given. */
  get end(): number {
    return this.#end;
  }

  append(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#end += piece.length;
    for (;;) {
      const [first] = this.#pieces;
      if (first === undefined || this.#end - this.#start - first.length < this.#mostBytes) return;
      this.#pieces.shift();
      this.#start += first.length;
    }
  }

  slice(start: number, end: number): Buffer {
    let offset = this.#start;
    const parts = this.#pieces.map((piece) => {
      const part = piece.subarray(Math.max(0, start - offset), Math.max(0, end - offset));
      offset += piece.length;
      return part;
    });
    return Buffer.concat(parts);
  }
}
