/** Objects of a bucket, read with the official client, which is only loaded for this. */
import type { Readable } from 'node:stream';
import type { GetObjectCommandOutput, ListObjectsV2CommandOutput, S3Client } from '@aws-sdk/client-s3';
import { reason, SourceError } from './source-error.ts';
import type { Listed, Opened, OpenOptions, Store } from './store.ts';

export interface S3Options {
  readonly bucket: string;
  /** The object, or the prefix of all that are meant, without a slash at its end. */
  readonly key: string;
  readonly isFolder: boolean;
  /** Empty for the one of the region. */
  readonly endpoint: string;
  /** Empty for the one of the client's own settings. */
  readonly region: string;
  readonly pathStyle: boolean;
}

type Client = { readonly s3: S3Client; readonly sdk: typeof import('@aws-sdk/client-s3') };

const TIMEOUTS = { connectionTimeout: 10_000, requestTimeout: 30_000, throwOnRequestTimeout: true };
/** More than a model has files; a prefix with more is another one than was meant. */
const MAX_OBJECTS = 1000;

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
      return opened(await s3.send(command, { abortSignal: signal }));
    } catch (error) {
      if (statusOf(error) === 304) return 'unchanged';
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
      const page = await s3.send(command, { abortSignal: signal });
      if (page.IsTruncated) throw new SourceError(`${this.#name(prefix)}: more than ${MAX_OBJECTS} objects`);
      return listed(page, prefix);
    } catch (error) {
      throw this.#failed(prefix, error, signal);
    }
  }

  /** The key of a file: under the prefix, or beside the object. */
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
    return { s3, sdk };
  }

  #name(key: string): string {
    return `s3://${this.#options.bucket}/${key}`;
  }

  #failed(key: string, error: unknown, signal: AbortSignal): unknown {
    signal.throwIfAborted();
    if (error instanceof SourceError) return error;
    const isMissing = statusOf(error) === 404 && error instanceof Error && error.name !== 'NoSuchBucket';
    const problem = isMissing ? 'no such object' : described(error);
    return new SourceError(`${this.#name(key)}: ${problem}`, { isAway: true, isMissing, cause: error });
  }
}

function opened({ Body, ContentLength, ETag }: GetObjectCommandOutput): Opened {
  // In Node the body is a stream of Node, whatever else the type allows.
  return { body: Body as Readable, bytes: ContentLength, etag: ETag };
}

/** Objects whose key ends in a slash are what some tools make of folders. */
function listed({ Contents = [] }: ListObjectsV2CommandOutput, prefix: string): Listed[] {
  return Contents.flatMap(({ Key = '', Size = 0, ETag = '' }) =>
    Key.endsWith('/') ? [] : [{ path: Key.slice(prefix.length), bytes: Size, etag: ETag }],
  );
}

function statusOf(error: unknown): number | undefined {
  const metadata = error instanceof Error && '$metadata' in error ? error.$metadata : undefined;
  return (metadata as { readonly httpStatusCode?: number } | undefined)?.httpStatusCode;
}

function described(error: unknown): string {
  const text = reason(error);
  if (text === 'Region is missing') return 'no region: set s3_region';
  const status = statusOf(error);
  return status === undefined ? text : `${text} (status ${status})`;
}
