/**
 * Runs the tests of the addon on the released addon, which was linked by another linker than that of the build: `node
 * scripts/release/test-engine.mjs [PLATFORM]`, after `npm run build` and `engine.mjs`. The released addon replaces the
 * addon of the build.
 */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ADDON, ADDON_NAME } from '../platform.mjs';
import { filesUnder } from '../stamp.mjs';
import { close, nodeTests } from '../test-run.mjs';
import { asProgram } from './command.mjs';
import { chosenPlatforms, engineFolder } from './platforms.mjs';

/** The folders of the tests that load the addon into their own process, or into one that they start. */
const FOLDERS = ['addon', 'in-process', 'real'];

await asProgram(import.meta.url, async (names) => {
  const [platform] = chosenPlatforms(names);
  // The old file is removed first, so that a process that has loaded it keeps it.
  rmSync(ADDON, { force: true });
  copyFileSync(join(engineFolder(platform), ADDON_NAME), ADDON);
  const files = FOLDERS.flatMap((name) => filesUnder(join('dist', 'test', name)));
  close([await nodeTests(files.filter((file) => file.endsWith('.test.js')))]);
});
