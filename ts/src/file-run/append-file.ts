/** A file that only grows at its end, and whose length after each commit is known. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Refusal } from '../refusal.ts';

export class AppendFile {
  readonly #file: FileHandle;
  #length: number;
  #pending: string[] = [];
  #pendingBytes = 0;

  private constructor(file: FileHandle, length: number) {
    this.#file = file;
    this.#length = length;
  }

  /**
   * Opens the file at `path` with its first `length` bytes; the bytes behind them are uncommitted output of an earlier
   * run and are cut off.
   *
   * @throws Refusal when the file is shorter.
   */
  static async open(path: string, length: number): Promise<AppendFile> {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o666);
    const { size } = await file.stat();
    if (size < length) {
      await file.close();
      throw new Refusal(`${path}: has ${size} bytes, but ${length} were written; it cannot be gone on with`);
    }
    await file.truncate(length);
    return new AppendFile(file, length);
  }

  /** The number of committed bytes in the file. */
  get length(): number {
    return this.#length;
  }

  /** The number of appended bytes that are not committed. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  append(text: string): void {
    this.#pending.push(text);
    this.#pendingBytes += Buffer.byteLength(text);
  }

  /** Resolves when all appended text is on the disk. */
  async commit(): Promise<void> {
    if (this.#pending.length === 0) return;
    const bytes = Buffer.from(this.#pending.join(''));
    [this.#pending, this.#pendingBytes] = [[], 0];
    // The write goes to a known offset instead of the end: if two processes run by mistake, they write the same bytes
    // to the same place.
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#length + done);
      done += bytesWritten;
    }
    await this.#file.datasync();
    this.#length += bytes.length;
  }

  /** Empties the file. */
  async clear(): Promise<void> {
    await this.#file.truncate(0);
    this.#length = 0;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
