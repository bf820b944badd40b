/** Parts of files, and fingerprints that show whether a file is still the same. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

const FINGERPRINT_BYTES = 64 * 1024;

/** Returns the bytes from `start` to `end` (exclusive), or fewer if the file ends earlier. */
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

/** Returns a SHA-256 digest, in hexadecimal, of the number `end` and of the last 64 KiB before that byte. */
export async function fingerprintBefore(file: FileHandle, end: number): Promise<string> {
  const part = await readPart(file, Math.max(0, end - FINGERPRINT_BYTES), end);
  return createHash('sha256').update(`${end}\n`).update(part).digest('hex');
}
