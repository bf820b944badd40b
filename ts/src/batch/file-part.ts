/** Parts of files, and what tells whether they are still the same. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

const FINGERPRINT_BYTES = 64 * 1024;

/** The bytes from `start` to `end`, fewer where the file ends before. */
export async function readPart(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, end - start));
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** A digest of the last bytes before `end`, and of how many bytes there are before it. */
export async function fingerprintBefore(file: FileHandle, end: number): Promise<string> {
  const part = await readPart(file, Math.max(0, end - FINGERPRINT_BYTES), end);
  return createHash('sha256').update(`${end}\n`).update(part).digest('hex');
}
