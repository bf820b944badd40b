import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';

test('the screenshots of the README show the pages of this version', async () => {
  const args = [join('scripts', 'screenshots.mjs'), '--check'];
  const { code, stdout, stderr } = await runCommand(process.execPath, { args, cwd: REPOSITORY });
  assert.deepEqual([code, stdout, stderr], [0, '', '']);
  for (const scheme of ['light', 'dark']) {
    const picture = readFileSync(join(REPOSITORY, 'docs', 'images', `dashboard-${scheme}.png`));
    // Bytes 16 to 24 of a PNG are its width and height.
    assert.deepEqual([picture.readUInt32BE(16), picture.readUInt32BE(20)], [1280, 800]);
  }
});
