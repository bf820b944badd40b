/**
 * Publishes the packages in dist/release/packed/: `node scripts/release/publish.mjs [FLAG...]`, with the flags of
 * `npm publish`. Every package of the release must be there. The main package is the last, so that a user who finds it
 * finds all of them. A package that is already published is skipped, so that a release that broke off can be run again.
 */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { asProgram } from './command.mjs';
import { PACKED } from './pack.mjs';
import { MAIN, MODEL } from './packages.mjs';
import { enginePackage, PLATFORMS, VERSION } from './platforms.mjs';
import { attempt, run } from './run.mjs';

const NAMES = [...PLATFORMS.map(enginePackage), MODEL, MAIN];

/** Returns the name that `npm pack` gives to the file of a package. */
const fileOf = (name) => `${name.replace('@', '').replace('/', '-')}-${VERSION}.tgz`;

function isPublished(name) {
  const args = ['view', `${name}@${VERSION}`, 'version', '--json'];
  const { status, stderr } = attempt('npm', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status === 0) return true;
  if (/E404/.test(stderr)) return false;
  throw new Error(`npm view ${name} failed: ${stderr.trim().split('\n', 1)[0]}`);
}

await asProgram(import.meta.url, (flags) => {
  const there = new Set(readdirSync(PACKED));
  const missing = NAMES.filter((name) => !there.has(fileOf(name)));
  if (missing.length > 0) throw new Error(`there is no package of ${missing.join(', ')} in ${PACKED}`);
  for (const name of NAMES) {
    if (isPublished(name)) process.stdout.write(`publish: ${name} ${VERSION} is there\n`);
    // npm may ask for a one-time code, so it gets the terminal.
    else run('npm', ['publish', resolve(join(PACKED, fileOf(name))), ...flags], { stdio: 'inherit' });
  }
});
