/**
 * A file as lines of bytes. Node's readline also ends a line at characters that may stand inside JSON, and it does not
 * report byte offsets.
 */
import { createReadStream } from 'node:fs';
import type { ByteInput } from './byte-input.ts';

const NEWLINE = 10;
const CHUNK_BYTES = 1024 * 1024;

interface LinesOptions {
  readonly path: string;
  /** The bytes of the file, if they are not read from `path`. */
  readonly input?: ByteInput | undefined;
  /** The byte offset to start at. */
  readonly from: number;
  /** The longest line that is held in memory, in bytes; of a longer one only its end is reported. */
  readonly maxBytes: number;
}

/** A line of a file. */
interface Line {
  /** The line without its line feed; undefined if it is longer than `maxBytes`. */
  readonly bytes: Buffer | undefined;
  /** The byte offset at which the next line begins. */
  readonly end: number;
}

/** Yields the lines of a file from the byte offset `from` on; a line ends at a line feed or at the end of the file. */
export async function* lines({ path, input, from, maxBytes }: LinesOptions): AsyncGenerator<Line> {
  let pieces: Buffer[] = [];
  let length = 0;
  let end = from;
  const line = (): Line => {
    const bytes = length > maxBytes ? undefined : Buffer.concat(pieces);
    [pieces, length] = [[], 0];
    return { bytes, end };
  };
  const chunks =
    input?.chunks(from, CHUNK_BYTES) ?? createReadStream(path, { start: from, highWaterMark: CHUNK_BYTES });
  for await (const data of chunks) {
    const chunk: Buffer = data;
    let start = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
      length += at - start;
      if (length <= maxBytes) pieces.push(chunk.subarray(start, at));
      end += at + 1 - start;
      start = at + 1;
      yield line();
    }
    const rest = chunk.subarray(start);
    length += rest.length;
    end += rest.length;
    if (length <= maxBytes) pieces.push(rest);
    else pieces = [];
  }
  if (length > 0) yield line();
}
