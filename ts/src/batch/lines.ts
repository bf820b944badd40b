/** A file as lines of bytes. Node's readline ends a line at characters that may stand in JSON, and tells no places. */
import { createReadStream } from 'node:fs';

const NEWLINE = 10;
const CHUNK_BYTES = 1024 * 1024;

export interface LinesOptions {
  readonly path: string;
  /** The byte to start at. */
  readonly from: number;
  /** Of a longer line only its end is told: it is not held in memory. */
  readonly maxBytes: number;
}

/** A line of a file. */
export interface Line {
  /** Without its end; undefined when there are too many of them. */
  readonly bytes: Buffer | undefined;
  /** Where the next line begins. */
  readonly end: number;
}

/** The lines of a file from a byte on, ended by a line feed or by the end of the file. */
export async function* lines({ path, from, maxBytes }: LinesOptions): AsyncGenerator<Line> {
  let pieces: Buffer[] = [];
  let length = 0;
  let end = from;
  const line = (): Line => {
    const bytes = length > maxBytes ? undefined : Buffer.concat(pieces);
    [pieces, length] = [[], 0];
    return { bytes, end };
  };
  for await (const data of createReadStream(path, { start: from, highWaterMark: CHUNK_BYTES })) {
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
