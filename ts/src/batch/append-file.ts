/** A file that grows at its end, and whose length after each commit is known. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Refusal } from '../refusal.ts';

export class AppendFile {
  readonly #file: FileHandle;
  #length: number;
  #pending: string[] = [];
  #pendingCharacters = 0;

  private constructor(file: FileHandle, length: number) {
    this.#file = file;
    this.#length = length;
  }

  /**
   * The file with its first `length` bytes; what is behind them was written by a run that did not come to commit it.
   *
   * @throws Refusal when it is shorter.
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

  /** Bytes in the file, without what is not committed. */
  get length(): number {
    return this.#length;
  }

  get pendingCharacters(): number {
    return this.#pendingCharacters;
  }

  append(text: string): void {
    this.#pending.push(text);
    this.#pendingCharacters += text.length;
  }

  /** Resolves when all that was appended is on the disk. */
  async commit(): Promise<void> {
    if (this.#pending.length === 0) return;
    const bytes = Buffer.from(this.#pending.join(''));
    [this.#pending, this.#pendingCharacters] = [[], 0];
    // At a place that is known, and not at the end: two processes by mistake then write the same over the same.
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, done, bytes.length - done, this.#length + done);
      done += bytesWritten;
    }
    await this.#file.datasync();
    this.#length += bytes.length;
  }

  /** Takes everything out of it again. */
  async clear(): Promise<void> {
    await this.#file.truncate(0);
    this.#length = 0;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
