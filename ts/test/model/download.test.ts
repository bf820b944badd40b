import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite, type TestContext, test } from 'node:test';
import { sha256Of } from '../../src/files/sha256.ts';
import { download, downloadText } from '../../src/model/download.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const LIMITS = { maxBytes: 1000, totalMs: 60_000, spanMs: 30_000, minBytesPerSpan: 1 };
const OPTIONS = { limits: LIMITS, signal: new AbortController().signal, what: 'm' };
const tooLarge = { name: 'SourceError', message: 'm: more than 1000 bytes (model_max_bytes)' };

/** Returns an object of `bytes`, in pieces; `isTold` is whether its sender tells the length. */
function objectOf(bytes: number, isTold: boolean) {
  const body = Readable.from([Buffer.alloc(1, 'x'), Buffer.alloc(bytes - 1, 'x')]);
  return { body, bytes: isTold ? bytes : undefined };
}

/** Downloads an object of `bytes`, and returns the content of the file. */
async function downloaded(t: TestContext, bytes: number, isTold: boolean): Promise<string> {
  const path = join(temporaryFolder(t), 'file');
  const digest = await download(objectOf(bytes, isTold), path, OPTIONS);
  const text = readFileSync(path, 'utf8');
  assert.deepEqual(digest, { bytes: text.length, sha256: sha256Of(text) });
  return text;
}

suite('a download', () => {
  for (const [what, isTold] of [
    ['that tells its length', true],
    ['that does not tell its length', false],
  ] as const) {
    test(`of an object ${what} may have model_max_bytes, and not one byte more`, async (t) => {
      assert.equal(await downloaded(t, 1000, isTold), 'x'.repeat(1000));
      await assert.rejects(downloaded(t, 1001, isTold), tooLarge);
    });

    test(`of a text ${what} may have its own limit, and not one byte more`, async () => {
      assert.equal(await downloadText(objectOf(10, isTold), OPTIONS, 10), 'x'.repeat(10));
      await assert.rejects(downloadText(objectOf(11, isTold), OPTIONS, 10), {
        name: 'SourceError',
        message: 'm: more than 10 bytes',
      });
    });
  }
});
