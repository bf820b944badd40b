import assert from 'node:assert/strict';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { isInUse, Lease } from '../../src/model/lease.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';

/** Returns a folder with the mark of a process that last renewed it this many minutes ago. */
function folderWithMark(t: TestContext, minutes: number): string {
  const folder = temporaryFolder(t);
  const mark = join(folder, '.in-use-1');
  writeFileSync(mark, '');
  const time = Date.now() / 1000 - minutes * 60;
  utimesSync(mark, time, time);
  return folder;
}

suite('a lease', () => {
  for (const minutes of [0, 2, 9]) {
    test(`that was renewed ${minutes} minutes ago holds`, async (t) => {
      assert.equal(await isInUse(folderWithMark(t, minutes)), true);
    });
  }

  test('that was renewed 11 minutes ago holds no more', async (t) => {
    assert.equal(await isInUse(folderWithMark(t, 11)), false);
  });

  test('holds beside one that does not, and until it is released', async (t) => {
    const folder = folderWithMark(t, 60);
    const lease = await Lease.take(folder);
    assert.equal(await isInUse(folder), true);
    await lease?.release();
    assert.equal(await isInUse(folder), false);
  });

  test('is renewed every minute', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const folder = temporaryFolder(t);
    const lease = await Lease.take(folder);
    const [name = assert.fail()] = readdirSync(folder);
    utimesSync(join(folder, name), 1, 1);
    t.mock.timers.tick(60_000);
    await until(() => statSync(join(folder, name)).mtimeMs >= Date.now() - 60_000);
    await lease?.release();
  });
});
