/**
 * Packs the packages of a platform as npm publishes them: `node scripts/release/pack.mjs [PLATFORM]` writes
 * dist/release/packed/. Those that are the same on all platforms are packed with the first of the list.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { asProgram } from './command.mjs';
import { MAIN, MODEL } from './packages.mjs';
import { chosenPlatforms, enginePackage, PLATFORMS, packageFolder, RELEASE } from './platforms.mjs';

export const PACKED = join(RELEASE, 'packed');

function pack(name) {
  // npm is a script on Windows, which only a shell starts.
  const shell = process.platform === 'win32';
  const args = ['pack', resolve(packageFolder(name)), '--pack-destination', PACKED];
  const { status } = spawnSync('npm', args, { stdio: ['ignore', 'inherit', 'inherit'], shell });
  if (status !== 0) throw new Error(`npm pack ${name} failed`);
}

await asProgram(import.meta.url, (names) => {
  mkdirSync(PACKED, { recursive: true });
  for (const platform of chosenPlatforms(names)) {
    pack(enginePackage(platform));
    if (platform === PLATFORMS[0]) for (const name of [MODEL, MAIN]) pack(name);
  }
});
