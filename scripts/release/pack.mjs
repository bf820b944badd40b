/**
 * Packs the packages of a platform in the form that npm publishes: `node scripts/release/pack.mjs [PLATFORM]` writes
 * dist/release/packed/. The packages that are the same on all platforms are packed with the first platform of the list.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { asProgram } from './command.mjs';
import { MAIN, MODEL } from './packages.mjs';
import { chosenPlatforms, enginePackage, PLATFORMS, packageFolder, RELEASE } from './platforms.mjs';
import { run } from './run.mjs';

export const PACKED = join(RELEASE, 'packed');

function pack(name) {
  const folder = packageFolder(name);
  if (!existsSync(folder)) throw new Error(`${folder} is not there: run node scripts/release/packages.mjs first`);
  run('npm', ['pack', resolve(folder), '--pack-destination', PACKED]);
}

await asProgram(import.meta.url, (names) => {
  mkdirSync(PACKED, { recursive: true });
  for (const platform of chosenPlatforms(names)) {
    pack(enginePackage(platform));
    if (platform === PLATFORMS[0]) for (const name of [MODEL, MAIN]) pack(name);
  }
});
