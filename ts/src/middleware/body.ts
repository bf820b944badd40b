/** Reads the bytes of a request's body, whatever their content type. */
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import getRawBody from 'raw-body';
import { HttpFailure } from '../errors.ts';

type Options = zlib.ZlibOptions & zlib.BrotliOptions;
type Decompress = (body: Buffer, options: Options) => Promise<Buffer>;

/** What `node:zlib` has since Node 22.15; the types are those of the oldest Node that we run on. */
interface Zstd {
  readonly zstdDecompress?: (
    body: Buffer,
    options: Options,
    callback: (error: Error | null, body: Buffer) => void,
  ) => void;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

const { zstdDecompress, constants } = zlib as unknown as Zstd;

// 8 MiB, all that a sender may ask for (RFC 9659): the window is memory that a few bytes could claim.
const ZSTD_WINDOW = { params: { [constants.ZSTD_d_windowLogMax ?? 0]: 23 } };

const zstd = zstdDecompress && promisify<Buffer, Options, Buffer>(zstdDecompress);

const DECOMPRESS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', promisify<Buffer, Options, Buffer>(zlib.gunzip)],
  ['x-gzip', promisify<Buffer, Options, Buffer>(zlib.gunzip)],
  ['deflate', promisify<Buffer, Options, Buffer>(zlib.inflate)],
  ['br', promisify<Buffer, Options, Buffer>(zlib.brotliDecompress)],
  ...(zstd ? [['zstd', (body, options) => zstd(body, { ...options, ...ZSTD_WINDOW })] as [string, Decompress]] : []),
]);

/** What a sender is told to use. */
const ENCODINGS = [...DECOMPRESS.keys()].filter((name) => name !== 'x-gzip').join(', ');

/** How long a body may be. */
export interface BodyLimit {
  /** Of the decompressed bytes. */
  readonly maxBytes: number;
  /** The setting that it comes from. */
  readonly setting: 'max_body_bytes' | 'max_batch_body_bytes';
}

/**
 * Returns the body of `req`, decompressed.
 * @throws HttpFailure `body_too_large`, `unsupported_encoding`, `bad_body`, `body_timeout`, `cancelled`
 */
export async function readBody(req: IncomingMessage, limit: BodyLimit): Promise<Buffer> {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase() || 'identity';
  if (encoding === 'identity') return read(req, limit.maxBytes, limit);
  const decompress = DECOMPRESS.get(encoding);
  if (!decompress) {
    const message = `unsupported content encoding; use one of ${ENCODINGS}`;
    throw new HttpFailure('unsupported_encoding', message, { 'Accept-Encoding': ENCODINGS });
  }
  const compressed = await read(req, maxCompressedBytes(limit.maxBytes), limit);
  // A bomb is stopped at the limit: the decompressor gives up when its output would be longer.
  return decompress(compressed, { maxOutputLength: limit.maxBytes }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE'
      ? tooLarge(limit)
      : new HttpFailure('bad_body', `body is not valid ${encoding}`);
  });
}

/** What cannot be compressed grows by a few bytes in every block and a header; that must not make it too large. */
const maxCompressedBytes = (maxBytes: number) => maxBytes + Math.ceil(maxBytes / 256) + 1024;

async function read(req: IncomingMessage, maxReadBytes: number, limit: BodyLimit): Promise<Buffer> {
  const length = Number(req.headers['content-length']);
  if (length > 0 && length <= maxReadBytes) return readKnown(req, length);
  try {
    return await getRawBody(req, { limit: maxReadBytes, length: req.headers['content-length'] ?? null });
  } catch (error) {
    // The server ends a read with a failure of its own, for example when its time is up.
    if (error instanceof HttpFailure) throw error;
    if ((error as getRawBody.RawBodyError).type === 'entity.too.large') throw tooLarge(limit);
    // All that is left is a connection that broke: the caller has gone.
    throw new HttpFailure('cancelled', 'the caller has gone');
  }
}

/**
 * A body whose length is known is whole with its last byte: waiting for the stream to say that it has ended would take
 * half of what the server spends beside the model. Node's parser gives neither more nor, unless the caller goes, less.
 */
function readKnown(req: IncomingMessage, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let read = 0;
    req.on('data', (part: Buffer) => {
      parts.push(part);
      read += part.length;
      if (read === length) resolve(parts.length === 1 ? part : Buffer.concat(parts, length));
    });
    // The server ends a read with a failure of its own, for example when its time is up; else the caller has gone.
    const gone = (error?: Error) => {
      // Every request is closed in the end; an error that nobody wants is dear to make.
      if (read === length) return;
      reject(error instanceof HttpFailure ? error : new HttpFailure('cancelled', 'the caller has gone'));
    };
    req.once('error', gone);
    req.once('close', () => gone());
  });
}

function tooLarge({ maxBytes, setting }: BodyLimit): HttpFailure {
  return new HttpFailure('body_too_large', `body larger than ${maxBytes} bytes (${setting})`);
}
