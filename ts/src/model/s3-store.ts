/** The store of a bucket's objects, read with the official client, which is loaded only when this store is used. */
import { type Readable, Transform } from 'node:stream';
import type { GetObjectCommandOutput, ListObjectsV2CommandOutput, S3Client } from '@aws-sdk/client-s3';
import { reason, SourceError } from './source-error.ts';
import type { Listed, Opened, OpenOptions, Store } from './store.ts';

interface S3Options {
  readonly bucket: string;
  /** The key of the object, or the prefix of all wanted objects, without a slash at its end. */
  readonly key: string;
  readonly isFolder: boolean;
  /** The URL of the S3 server; empty for the endpoint of the region. */
  readonly endpoint: string;
  /** The region; empty for the one in the client's own settings. */
  readonly region: string;
  readonly pathStyle: boolean;
  /** Longest wait for the beginning of an object, and for the whole of a listing, repeated tries included. */
  readonly answerMs?: number;
}

type Client = { readonly s3: S3Client; readonly sdk: typeof import('@aws-sdk/client-s3') };

const TIMEOUTS = { connectionTimeout: 10_000, requestTimeout: 30_000, throwOnRequestTimeout: true };
/** The default of `answerMs`: time for three tries, and for the pauses between them that a server asks for. */
const ANSWER_MS = 60_000;
/** The most objects of a listing: more than a model has files. A prefix with more objects was named by mistake. */
const MAX_OBJECTS = 1000;
/**
 * The most bytes of a listing or of the text of an error, which the client holds in memory as a whole. A listing has
 * 1,000 keys of 1,024 bytes.
 */
const MAX_XML_BYTES = 4 * 2 ** 20;

export class S3Store implements Store {
  readonly #options: S3Options;
  #client: Promise<Client> | undefined;

  constructor(options: S3Options) {
    this.#options = options;
  }

  async open(path: string | undefined, { etag, signal }: OpenOptions): Promise<Opened | 'unchanged'> {
    const key = path === undefined ? this.#options.key : this.#keyOf(path);
    const { s3, sdk } = await this.#connected();
    const command = new sdk.GetObjectCommand({ Bucket: this.#options.bucket, Key: key, IfNoneMatch: etag });
    try {
      return openedObject(await this.#inTime(signal, (abortSignal) => s3.send(command, { abortSignal })));
    } catch (error) {
      if (httpStatusOf(error) === 304) return 'unchanged';
      throw this.#failed(key, error, signal);
    }
  }

  async list(signal: AbortSignal): Promise<Listed[]> {
    const prefix = this.#options.key === '' ? '' : `${this.#options.key}/`;
    const { s3, sdk } = await this.#connected();
    const command = new sdk.ListObjectsV2Command({
      Bucket: this.#options.bucket,
      Prefix: prefix,
      MaxKeys: MAX_OBJECTS,
    });
    try {
      const page = await this.#inTime(signal, (abortSignal) => s3.send(command, { abortSignal }));
      if (page.IsTruncated) throw new SourceError(`more than ${MAX_OBJECTS} objects`);
      return listed(page, prefix);
    } catch (error) {
      throw this.#failed(prefix, error, signal);
    }
  }

  /** Returns the key of a file: under the prefix, or next to the object. */
  #keyOf(path: string): string {
    const { key, isFolder } = this.#options;
    const folder = isFolder ? key : key.slice(0, Math.max(0, key.lastIndexOf('/')));
    return folder === '' ? path : `${folder}/${path}`;
  }

  #connected(): Promise<Client> {
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<Client> {
    const { endpoint, region, pathStyle } = this.#options;
    const sdk = await import('@aws-sdk/client-s3');
    const s3 = new sdk.S3Client({
      ...(endpoint !== '' && { endpoint }),
      ...(region !== '' && { region }),
      forcePathStyle: pathStyle,
      requestHandler: TIMEOUTS,
    });
    // The client reads a listing, and the text of an error, as a whole and at any length.
    s3.middlewareStack.add(
      (next, { commandName }) =>
        async (args) => {
          const result = await next(args);
          const response = result.response as { readonly statusCode: number; body: Readable };
          const isObject = commandName === 'GetObjectCommand' && response.statusCode === 200;
          if (!isObject) response.body = bounded(response.body);
          return result;
        },
      // This step is nearer to the wire than the step that reads the answer.
      { step: 'deserialize', priority: 'low' },
    );
    return { s3, sdk };
  }

  /**
   * Returns the answer of `send`. The signal that `send` gets has no effect after that: the reader of an object watches
   * over the transfer of its bytes.
   *
   * @throws SourceError when the answer does not come within `answerMs`.
   */
  async #inTime<Answer>(signal: AbortSignal, send: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const { answerMs = ANSWER_MS } = this.#options;
    const stop = new AbortController();
    const late = new SourceError(`no answer within ${answerMs / 1000} s`, { isAway: true });
    const timer = setTimeout(() => stop.abort(late), answerMs);
    const end = () => stop.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      return await send(stop.signal);
    } catch (error) {
      throw stop.signal.reason === late ? late : error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  }

  #name(key: string): string {
    return `s3://${this.#options.bucket}/${key}`;
  }

  #failed(key: string, error: unknown, signal: AbortSignal): unknown {
    signal.throwIfAborted();
    if (error instanceof SourceError) {
      return new SourceError(`${this.#name(key)}: ${withoutAdvice(error.message)}`, {
        isAway: error.isAway,
        cause: error,
      });
    }
    const isMissing = httpStatusOf(error) === 404 && error instanceof Error && error.name !== 'NoSuchBucket';
    const problem = isMissing ? 'no such object' : described(error);
    return new SourceError(`${this.#name(key)}: ${problem}`, { isAway: true, isMissing, cause: error });
  }
}

/** Returns a body that fails beyond `MAX_XML_BYTES`: for answers that are no objects. */
function bounded(body: Readable): Readable {
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes <= MAX_XML_BYTES) return done(null, chunk);
      done(new SourceError(`an answer of more than ${MAX_XML_BYTES} bytes that is no object`));
    },
  });
  body.on('error', (error) => limit.destroy(error));
  limit.on('close', () => body.destroy());
  return body.pipe(limit);
}

function openedObject({ Body, ContentLength, ETag }: GetObjectCommandOutput): Opened {
  // In Node the body is always a stream of Node, although its type allows others.
  return { body: Body as Readable, bytes: ContentLength, etag: ETag };
}

/**
 * Returns the objects of a listing, with paths from `prefix` on. Objects whose key ends in a slash are left out: some
 * tools make them for folders.
 *
 * @throws SourceError when a key is not under `prefix` or a size is impossible.
 */
function listed({ Contents = [] }: ListObjectsV2CommandOutput, prefix: string): Listed[] {
  return Contents.flatMap(({ Key = '', Size = 0, ETag = '' }) => {
    if (Key.endsWith('/')) return [];
    if (!Key.startsWith(prefix)) throw new SourceError('its listing has a key that is not under the prefix');
    if (!Number.isSafeInteger(Size) || Size < 0) throw new SourceError('its listing has a size that cannot be');
    return [{ path: Key.slice(prefix.length), bytes: Size, etag: ETag }];
  });
}

function httpStatusOf(error: unknown): number | undefined {
  const metadata = error instanceof Error && '$metadata' in error ? error.$metadata : undefined;
  return (metadata as { readonly httpStatusCode?: number } | undefined)?.httpStatusCode;
}

const LANGUAGE_ERRORS = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];

function described(error: unknown): string {
  // An error of the language, such as a TypeError, is about the client's own variables, unless Node gave it a code.
  const isTold = error instanceof Error && (!LANGUAGE_ERRORS.some((kind) => error instanceof kind) || 'code' in error);
  const text = isTold ? withoutAdvice(reason(error)) : 'what it answers makes no sense';
  if (text === 'Region is missing') return 'no region: set s3_region';
  const status = httpStatusOf(error);
  return status === undefined ? text : `${text} (status ${status})`;
}

/** Returns an error's text without the advice for programmers that the client adds to it. */
function withoutAdvice(text: string): string {
  return text.replace(/\s*Deserialization error: .*$/s, '');
}
