/** The store of an archive on this disk. */
import { type FileHandle, open } from 'node:fs/promises';
import { errorCode } from '../files/system-error.ts';
import { SourceError } from './source-error.ts';
import type { Opened, OpenOptions, Store } from './store.ts';

export class FileStore implements Store {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async open(_path: undefined, { etag }: Pick<OpenOptions, 'etag'>): Promise<Opened | 'unchanged'> {
    // The file is opened before its stream is made: a stream that fails to open it does so before it has listeners.
    const file = await open(this.#path).catch((error: unknown) => {
      const problem = errorCode(error) === 'ENOENT' ? 'no such file' : `cannot be read (${errorCode(error)})`;
      throw new SourceError(`${this.#path}: ${problem}`, { isAway: true, cause: error });
    });
    const opened = await this.#opened(file, etag).catch(async (error: unknown) => {
      await file.close();
      throw error;
    });
    if (opened === 'unchanged') await file.close();
    return opened;
  }

  async #opened(file: FileHandle, etag: string | undefined): Promise<Opened | 'unchanged'> {
    const status = await file.stat();
    if (!status.isFile()) throw new SourceError(`${this.#path}: is not a file`, { isAway: true });
    const tag = `${status.size}-${status.mtimeMs}-${status.ino}`;
    if (tag === etag) return 'unchanged';
    return { body: file.createReadStream(), bytes: status.size, etag: tag };
  }
}
