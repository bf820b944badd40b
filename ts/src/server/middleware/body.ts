/** Reads the bytes of a request's body, regardless of their content type. */
import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { callerGone, HttpFailure } from '../../errors.ts';
import { BodyParts } from './body-parts.ts';
import { type ArrivingBody, type BodyRoom, FREE_BYTES } from './body-room.ts';

/** The parts of `node:zlib` that exist since Node 22.15; the types are those of the oldest supported Node. */
interface Zstd {
  readonly createZstdDecompress?: (options: zlib.ZlibOptions) => Transform;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

const { createZstdDecompress, constants } = zlib as unknown as Zstd;

// 8 MiB is the largest window that a sender may use (RFC 9659); a larger one is memory that a few bytes could claim.
const ZSTD_WINDOW = { params: { [constants.ZSTD_d_windowLogMax ?? 0]: 23 } } as zlib.ZlibOptions;

const DECOMPRESSOR: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => zlib.createGunzip()],
  ['x-gzip', () => zlib.createGunzip()],
  ['deflate', () => zlib.createInflate()],
  ['br', () => zlib.createBrotliDecompress()],
  ...(createZstdDecompress ? [['zstd', () => createZstdDecompress(ZSTD_WINDOW)] as [string, () => Transform]] : []),
]);

/** The supported content encodings, for a sender of another one. */
const ENCODINGS = [...DECOMPRESSOR.keys()].filter((name) => name !== 'x-gzip').join(', ');

/** The limit on a body's length. */
export interface BodyLimit {
  /** The largest number of decompressed bytes. */
  readonly maxBytes: number;
  /** The setting that the limit comes from. */
  readonly setting: 'max_body_bytes' | 'max_batch_body_bytes';
}

/** The limits for reading a body: its own one, and the room that it shares with all other bodies. */
interface BodyReading {
  readonly limit: BodyLimit;
  readonly room: BodyRoom;
}

/**
 * Returns the body of `req`, decompressed.
 * @throws HttpFailure `body_too_large`, `unsupported_encoding`, `bad_body`, `body_timeout`, `queue_full`, `cancelled`
 */
export async function readBody(req: IncomingMessage, { limit, room }: BodyReading): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase() || 'identity';
  const decompressor = DECOMPRESSOR.get(encoding);
  if (!decompressor && encoding !== 'identity') {
    const message = `unsupported content encoding; use one of ${ENCODINGS}`;
    throw new HttpFailure('unsupported_encoding', message, { 'Accept-Encoding': ENCODINGS });
  }
  const maxReadBytes = decompressor ? maxCompressedBytes(limit.maxBytes) : limit.maxBytes;
  const length = Number(req.headers['content-length'] ?? 0);
  if (length > maxReadBytes) throw tooLarge(limit);
  // The usual request is so small that its bytes are not counted.
  if (!decompressor && length > 0 && length <= FREE_BYTES) return readKnown(req, length);
  const body = room.enter(length);
  try {
    const read = await readCounted(req, { body, length, maxReadBytes, limit });
    return decompressor ? await decompressed(read, { body, decompressor, encoding, limit }) : read;
  } finally {
    room.leave(body);
  }
}

/**
 * Returns the largest number of bytes that `maxBytes` may have when compressed: incompressible data grows by a header
 * and a few bytes for every block, and that must not make a body too large.
 */
const maxCompressedBytes = (maxBytes: number) => maxBytes + Math.ceil(maxBytes / 256) + 1024;

interface Counted {
  readonly body: ArrivingBody;
  /** The declared length in bytes; 0 if it is unknown. */
  readonly length: number;
  readonly maxReadBytes: number;
  readonly limit: BodyLimit;
}

async function readCounted(req: IncomingMessage, { body, length, maxReadBytes, limit }: Counted): Promise<Buffer> {
  body.giveWay = (failure) => req.emit('error', failure);
  const count = (part: Buffer) => body.add(part.length);
  try {
    // The reader's listeners come first, so that a body that has to give way while its bytes are counted finds them.
    const read = length > 0 ? readKnown(req, length) : readUnknown(req, maxReadBytes, limit);
    req.on('data', count);
    return await read;
  } finally {
    req.off('data', count);
  }
}

/** Reads a body of unknown length; it is complete when the stream ends. */
function readUnknown(req: IncomingMessage, maxReadBytes: number, limit: BodyLimit): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts = new BodyParts();
    const leave = () => req.off('data', take).off('end', end).off('error', gone).off('close', gone);
    const take = (part: Buffer) => {
      parts.add(part);
      if (parts.bytes <= maxReadBytes && !parts.areTiny) return;
      leave().pause();
      reject(parts.areTiny ? tinyParts() : tooLarge(limit));
    };
    const end = () => {
      leave();
      resolve(parts.joined());
    };
    const gone = (error?: Error) => {
      leave();
      reject(goneFailure(error));
    };
    req.on('data', take).on('end', end).on('error', gone).on('close', gone);
    // A request that closed earlier emits no further event.
    if (req.destroyed) gone();
  });
}

/**
 * Returns the failure of an interrupted read: the server's own, for example its timeout, or else that the caller has
 * gone.
 */
function goneFailure(error: Error | undefined): HttpFailure {
  return error instanceof HttpFailure ? error : callerGone();
}

/**
 * Reads a body of known length; it is complete with its last byte. Waiting for the end of the stream would take half of
 * the time that the server spends besides the model. Node's parser delivers neither more bytes nor, unless the caller
 * goes, fewer.
 */
function readKnown(req: IncomingMessage, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts = new BodyParts();
    // The functions are dropped once the promise is settled, because it holds the body: an idle connection keeps its
    // latest request alive, and the request keeps this function's listeners alive.
    let waiting: { resolve: typeof resolve; reject: typeof reject } | undefined = { resolve, reject };
    const take = (part: Buffer) => {
      parts.add(part);
      if (parts.bytes !== length) return;
      waiting?.resolve(parts.joined());
      waiting = undefined;
    };
    req.on('data', take);
    const gone = (error?: Error) => {
      // Every request closes in the end, so this usually runs after the body was read; an unused error would be costly
      // to make.
      if (waiting === undefined) return;
      // The received bytes and all further ones are discarded.
      req.off('data', take);
      parts.clear();
      waiting.reject(goneFailure(error));
      waiting = undefined;
    };
    req.once('error', gone);
    req.once('close', () => gone());
  });
}

interface Compressed {
  readonly body: ArrivingBody;
  readonly decompressor: () => Transform;
  readonly encoding: string;
  readonly limit: BodyLimit;
}

/**
 * Decompresses a body in pieces: a decompression bomb is stopped at the limit, and its bytes count in the shared room
 * on the way there.
 */
async function decompressed(read: Buffer, { body, decompressor, encoding, limit }: Compressed): Promise<Buffer> {
  const stream = decompressor();
  body.giveWay = (failure) => stream.destroy(failure);
  const parts: Buffer[] = [];
  let bytes = 0;
  stream.end(read);
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > limit.maxBytes) throw tooLarge(limit);
      parts.push(part);
      body.add(part.length);
    }
  } catch (error) {
    throw error instanceof HttpFailure ? error : new HttpFailure('bad_body', `body is not valid ${encoding}`);
  }
  return Buffer.concat(parts, bytes);
}

/**
 * Returns the failure of a body in tiny parts. Discarding the rest of it would cost as much as reading it, so its
 * connection is closed.
 */
function tinyParts(): HttpFailure {
  return new HttpFailure('bad_body', 'body in too many chunks of a few bytes; send larger ones', {
    Connection: 'close',
  });
}

function tooLarge({ maxBytes, setting }: BodyLimit): HttpFailure {
  return new HttpFailure('body_too_large', `body larger than ${maxBytes} bytes (${setting})`);
}
