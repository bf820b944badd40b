/** An archive on this disk. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { errorCode } from '../exclusive-file.ts';
import { SourceError } from './source-error.ts';
import type { Opened, OpenOptions, Store } from './store.ts';

export class FileStore implements Store {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async open(_path: undefined, { etag, signal }: OpenOptions): Promise<Opened | 'unchanged'> {
    const file = await stat(this.#path).catch((error: unknown) => {
      const problem = errorCode(error) === 'ENOENT' ? 'no such file' : `cannot be read (${errorCode(error)})`;
      throw new SourceError(`${this.#path}: ${problem}`, { isAway: true, cause: error });
    });
    if (!file.isFile()) throw new SourceError(`${this.#path}: is not a file`, { isAway: true });
    const tag = `${file.size}-${file.mtimeMs}-${file.ino}`;
    if (tag === etag) return 'unchanged';
    return { body: createReadStream(this.#path, { signal }), bytes: file.size, etag: tag };
  }
}
