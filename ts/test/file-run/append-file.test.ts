import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { AppendFile } from '../../src/file-run/append-file.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Returns the prototype of all open files, whose methods a test may replace. */
async function fileHandles(t: TestContext): Promise<FileHandle> {
  const file = await open(join(temporaryFolder(t), 'any'), 'w');
  await file.close();
  return Object.getPrototypeOf(file);
}

suite('a file that grows at its end', () => {
  test('has nothing of what was written behind its last commit', async (t) => {
    const path = join(temporaryFolder(t), 'rows');
    writeFileSync(path, `one\n${'torn'.repeat(1000)}`);
    const file = await AppendFile.open(path, 4);
    assert.equal(readFileSync(path, 'utf8'), 'one\n');
    file.append('two\n');
    await file.commit();
    await file.close();
    assert.equal(readFileSync(path, 'utf8'), 'one\ntwo\n');
  });

  test('has all that was appended when the disk takes a few bytes at a time', async (t) => {
    const handles = await fileHandles(t);
    const write = handles.write as (...given: unknown[]) => unknown;
    t.mock.method(handles, 'write', function few(this: FileHandle, ...given: unknown[]) {
      const [bytes, start, length, at] = given;
      return write.call(this, bytes, start, Math.min(3, Number(length)), at);
    });
    const path = join(temporaryFolder(t), 'rows');
    const file = await AppendFile.open(path, 0);
    for (const text of ['the first row\n', 'the second row, é\n']) {
      file.append(text);
      await file.commit();
    }
    await file.close();
    assert.equal(readFileSync(path, 'utf8'), 'the first row\nthe second row, é\n');
  });
});
