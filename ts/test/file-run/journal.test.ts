import assert from 'node:assert/strict';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { type Journal, readJournal, writeJournal } from '../../src/file-run/journal.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const counts = { row: 1, offset: 2, answered: 1, bad: 0, output_bytes: 3, error_bytes: 0, parts: 0, part_rows: 0 };
const JOURNAL: Journal = { format: 1, run: 'r', settings: 's', model: null, read: 'f', ...counts, done: false };

suite('the journal of a run', () => {
  test('is what was written last', async (t) => {
    const path = join(temporaryFolder(t), 'journal');
    assert.equal(readJournal(path), undefined);
    await writeJournal(path, JOURNAL);
    await writeJournal(path, { ...JOURNAL, row: 2, done: true });
    assert.deepEqual(readJournal(path), { ...JOURNAL, row: 2, done: true });
  });

  test('is still the old one, whole, when the disk is full in the middle of a new one', async (t) => {
    const path = join(temporaryFolder(t), 'journal');
    await writeJournal(path, JOURNAL);
    const any = await open(path);
    await any.close();
    t.mock.method(Object.getPrototypeOf(any), 'writeFile', async function half(this: FileHandle, text: string) {
      await this.write(text.slice(0, text.length / 2));
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    });
    await assert.rejects(writeJournal(path, { ...JOURNAL, row: 2 }), { code: 'ENOSPC' });
    assert.deepEqual(readJournal(path), JOURNAL);
  });
});
