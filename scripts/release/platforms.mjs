/** The platforms of a release, from the one list in `npm/`, and the names and folders that depend on them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const read = (path) => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'));

const LIST = read('npm/platforms.json');

/** The root's `package.json`, which is the one place of the version. */
export const ROOT_PACKAGE = read('package.json');

export const VERSION = ROOT_PACKAGE.version;

/** The oldest glibc that the engine runs with. */
export const GLIBC = LIST.glibc;

/** The compiler that releases are built with. */
export const RUST_VERSION = LIST.rust;

/** The version of Node in the archives. */
export const NODE_VERSION = LIST.node;

export const PLATFORMS = LIST.platforms;

/** The folder in which a release is made; a test that runs next to others sets a folder of its own. */
export const RELEASE = process.env.SVC_RELEASE_FOLDER || join('dist', 'release');

/** Returns the name of a platform's npm package. */
export function enginePackage({ name }) {
  return `@svc/engine-${name}`;
}

/** Returns the folder of a package before it is packed. */
export function packageFolder(name) {
  return join(RELEASE, 'node_modules', ...name.split('/'));
}

/** Returns the folder into which `engine.mjs` puts the addon of a platform. */
export function engineFolder({ name }) {
  return join(RELEASE, 'engine', name);
}

/** Returns the platforms with these names, or that of this machine if there are no names. */
export function chosenPlatforms(names) {
  const flag = names.find((name) => name.startsWith('-'));
  if (flag !== undefined) throw new Error(`unknown flag ${flag}; docs/releasing.md says what each command takes`);
  if (names.length === 0) return PLATFORMS.filter(({ os, cpu }) => os === process.platform && cpu === process.arch);
  return names.map((name) => {
    const platform = PLATFORMS.find((one) => one.name === name);
    if (!platform) throw new Error(`there is no platform ${name}: ${PLATFORMS.map((one) => one.name).join(', ')}`);
    return platform;
  });
}
