/** Fetches the Node for an archive: an npm package that contains the official build, checked against `npm/`. */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { extract } from 'tar';
import { NODE_VERSION, PLATFORMS, RELEASE } from './platforms.mjs';
import { output } from './run.mjs';

/** Returns the folder of Node's package for a platform, and fetches the package if it is not there yet. */
export function nodeFolder({ node }) {
  const folder = join(RELEASE, 'node', `${node.package}-${NODE_VERSION}`);
  if (existsSync(folder)) return folder;
  const temporary = `${folder}.${process.pid}`;
  mkdirSync(temporary, { recursive: true });
  const file = join(temporary, fetchPackage(node, temporary));
  extract({ file, cwd: temporary, sync: true, filter: (path) => /^package\/(bin\/|LICENSE$)/.test(path) });
  renameSync(join(temporary, 'package'), folder);
  rmSync(temporary, { recursive: true });
  return folder;
}

/** Returns the path of Node's licence. It is the same on all platforms, but the package for Windows lacks it. */
export function nodeLicence(platform) {
  const own = join(nodeFolder(platform), 'LICENSE');
  return existsSync(own) ? own : join(nodeFolder(PLATFORMS[0]), 'LICENSE');
}

function fetchPackage({ package: name, integrity }, destination) {
  const args = ['pack', `${name}@${NODE_VERSION}`, '--json', '--pack-destination', destination];
  // Depending on its version, npm prints a list, or an object by the packages' names.
  const [packed] = Object.values(JSON.parse(output('npm', args)));
  if (packed.integrity !== integrity) throw new Error(`${name}@${NODE_VERSION} is not what npm/platforms.json has`);
  return packed.filename;
}
