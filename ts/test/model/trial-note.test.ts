import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { TrialNote } from '../../src/model/trial-note.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const SHA256 = 'ab'.repeat(32);

suite('the note of a trial', () => {
  test('counts no deaths where several trials of one process begin and end at the same time', async (t) => {
    const file = join(temporaryFolder(t), 'sources', 'note.json');
    const trials = async () => {
      const deaths: number[] = [];
      for (let number = 0; number < 40; number += 1) {
        const note = new TrialNote(file);
        deaths.push(await note.begin(SHA256));
        await note.end();
      }
      return Math.max(...deaths);
    };
    assert.deepEqual(await Promise.all(Array.from({ length: 5 }, trials)), [0, 0, 0, 0, 0]);
    assert.ok(!existsSync(file));
  });

  test('stays until the last trial of the process ends', async (t) => {
    const file = join(temporaryFolder(t), 'note.json');
    const [first, second] = [new TrialNote(file), new TrialNote(file)];
    await first.begin(SHA256);
    await second.begin(SHA256);
    await first.end();
    assert.ok(existsSync(file));
    await second.end();
    assert.ok(!existsSync(file));
  });
});
