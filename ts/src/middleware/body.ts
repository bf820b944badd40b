/** Reads the bytes of a request's body, whatever their content type. */
import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { HttpFailure } from '../errors.ts';
import { BodyParts } from './body-parts.ts';
import { type ArrivingBody, type BodyRoom, FREE_BYTES } from './body-room.ts';

/** What `node:zlib` has since Node 22.15; the types are those of the oldest Node that we run on. */
interface Zstd {
  readonly createZstdDecompress?: (options: zlib.ZlibOptions) => Transform;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

const { createZstdDecompress, constants } = zlib as unknown as Zstd;

// 8 MiB, all that a sender may ask for (RFC 9659): the window is memory that a few bytes could claim.
const ZSTD_WINDOW = { params: { [constants.ZSTD_d_windowLogMax ?? 0]: 23 } } as zlib.ZlibOptions;

const DECOMPRESSOR: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => zlib.createGunzip()],
  ['x-gzip', () => zlib.createGunzip()],
  ['deflate', () => zlib.createInflate()],
  ['br', () => zlib.createBrotliDecompress()],
  ...(createZstdDecompress ? [['zstd', () => createZstdDecompress(ZSTD_WINDOW)] as [string, () => Transform]] : []),
]);

/** What a sender is told to use. */
const ENCODINGS = [...DECOMPRESSOR.keys()].filter((name) => name !== 'x-gzip').join(', ');

/** How long a body may be. */
export interface BodyLimit {
  /** Of the decompressed bytes. */
  readonly maxBytes: number;
  /** The setting that it comes from. */
  readonly setting: 'max_body_bytes' | 'max_batch_body_bytes';
}

/** Where a body is read: what it may be by itself, and what it shares with all others. */
export interface BodyReading {
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
  // The usual request is so small that it is not counted.
  if (!decompressor && length > 0 && length <= FREE_BYTES) return readKnown(req, length);
  const body = room.enter(length);
  try {
    const read = await readCounted(req, { body, length, maxReadBytes, limit });
    return decompressor ? await decompressed(read, { body, decompressor, encoding, limit }) : read;
  } finally {
    room.leave(body);
  }
}

/** What cannot be compressed grows by a few bytes in every block and a header; that must not make it too large. */
const maxCompressedBytes = (maxBytes: number) => maxBytes + Math.ceil(maxBytes / 256) + 1024;

interface Counted {
  readonly body: ArrivingBody;
  /** 0 when it is not known. */
  readonly length: number;
  readonly maxReadBytes: number;
  readonly limit: BodyLimit;
}

async function readCounted(req: IncomingMessage, { body, length, maxReadBytes, limit }: Counted): Promise<Buffer> {
  body.giveWay = (failure) => req.emit('error', failure);
  const count = (part: Buffer) => body.add(part.length);
  try {
    // Whoever reads listens first: what makes a body give way must find it.
    const read = length > 0 ? readKnown(req, length) : readUnknown(req, maxReadBytes, limit);
    req.on('data', count);
    return await read;
  } finally {
    req.off('data', count);
  }
}

/** A body whose length is not known is whole when the stream says so. */
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
    // Nothing is heard of a request that has closed before.
    if (req.destroyed) gone();
  });
}

/** The server ends a read with a failure of its own, for example when its time is up; else the caller has gone. */
function goneFailure(error: Error | undefined): HttpFailure {
  return error instanceof HttpFailure ? error : new HttpFailure('cancelled', 'the caller has gone');
}

/**
 * A body whose length is known is whole with its last byte: waiting for the stream to say that it has ended would take
 * half of what the server spends beside the model. Node's parser gives neither more nor, unless the caller goes, less.
 */
function readKnown(req: IncomingMessage, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts = new BodyParts();
    // A settled promise has the body. An idle connection has its latest request, and that has who listens: this function.
    let waiting: { resolve: typeof resolve; reject: typeof reject } | undefined = { resolve, reject };
    const take = (part: Buffer) => {
      parts.add(part);
      if (parts.bytes !== length) return;
      waiting?.resolve(parts.joined());
      waiting = undefined;
    };
    req.on('data', take);
    const gone = (error?: Error) => {
      // Every request is closed in the end; an error that nobody wants is dear to make.
      if (waiting === undefined) return;
      // What still comes is thrown away, and so is what came.
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

/** Decompresses in pieces: a bomb is stopped at the limit, and what others hold counts on the way there. */
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

/** Reading what is left of such a body would cost as much as reading it, so its connection goes. */
function tinyParts(): HttpFailure {
  return new HttpFailure('bad_body', 'body in too many chunks of a few bytes; send larger ones', {
    Connection: 'close',
  });
}

function tooLarge({ maxBytes, setting }: BodyLimit): HttpFailure {
  return new HttpFailure('body_too_large', `body larger than ${maxBytes} bytes (${setting})`);
}
