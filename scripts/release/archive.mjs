/**
 * Makes the archives of the server: `node scripts/release/archive.mjs [--local] [PLATFORM...]` writes
 * dist/release/archives/svc-VERSION-PLATFORM.tar.gz, or .zip for Windows, and SHA256SUMS over all archives there. An
 * archive has its own Node and the packages as npm installs them, so it needs nothing else; docs/releasing.md describes
 * its layout. The same content makes the same bytes.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  createWriteStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { create } from 'tar';
import { ZipFile } from 'yazl';
import { filesUnder } from '../stamp.mjs';
import { addressInstallers } from './address.mjs';
import { asProgram } from './command.mjs';
import { requireOldGlibc } from './glibc.mjs';
import { nodeFolder, nodeLicence } from './node.mjs';
import { MAIN, MODEL, makePackages } from './packages.mjs';
import { chosenPlatforms, enginePackage, PLATFORMS, packageFolder, RELEASE, VERSION } from './platforms.mjs';
import { billOfMaterials } from './sbom.mjs';

export const ARCHIVES = join(RELEASE, 'archives');

const LAUNCHERS = join('scripts', 'release', 'launcher');

/** The parts of `deploy/` in an archive for each system: its installer, and the files that run it as a service. */
const DEPLOY = {
  linux: ['install.sh', 'systemd'],
  darwin: ['install.sh', 'launchd'],
  win32: ['install.ps1'],
};

/** The time of every entry; a zip cannot hold a time before 1980. */
const TIME = new Date('1985-10-26T08:15:00Z');

/**
 * The file name of the bill of materials in an archive; its copy next to the archive has the archive's name before it.
 */
const SBOM = 'cdx.json';

/** The top folder of every archive, which holds everything else. */
const TOP = `svc-${VERSION}`;

export function archiveName({ archive, os }) {
  return `${TOP}-${archive}.${os === 'win32' ? 'zip' : 'tar.gz'}`;
}

/** Lays out the content of a platform's archive, and returns the folder that holds the top folder. */
function stage(platform) {
  const folder = join(RELEASE, 'stage', platform.name);
  rmSync(folder, { recursive: true, force: true });
  const top = join(folder, TOP);
  const [launcher, node] = platform.os === 'win32' ? ['svc.cmd', 'node.exe'] : ['svc', 'node'];
  for (const path of ['bin', 'lib', 'licenses']) mkdirSync(join(top, path), { recursive: true });
  for (const name of [MAIN, MODEL, enginePackage(platform)]) {
    cpSync(packageFolder(name), join(top, 'lib', 'node_modules', ...name.split('/')), { recursive: true });
  }
  for (const path of DEPLOY[platform.os]) cpSync(join('deploy', path), join(top, 'share', path), { recursive: true });
  copyFileSync(join(nodeFolder(platform), 'bin', node), join(top, 'lib', node));
  if (platform.os === 'linux') requireOldGlibc(join(top, 'lib', node));
  copyFileSync(nodeLicence(platform), join(top, 'licenses', 'node.txt'));
  copyFileSync(join(LAUNCHERS, launcher), join(top, 'bin', launcher));
  copyFileSync('LICENSE', join(top, 'LICENSE'));
  writeFileSync(join(top, 'VERSION'), `${VERSION}\n`);
  writeFileSync(join(top, SBOM), `${JSON.stringify(billOfMaterials(platform), null, 2)}\n`);
  addressInstallers(join(top, 'share'));
  for (const file of filesUnder(top)) chmodSync(file, 0o644);
  for (const file of [join('bin', launcher), join('lib', node)]) chmodSync(join(top, file), 0o755);
  return folder;
}

/** Packs all files below `folder`, sorted, without an owner. */
async function pack(folder, file) {
  const entries = filesUnder(folder).map((path) => relative(folder, path).replaceAll('\\', '/'));
  if (file.endsWith('.zip')) {
    const zip = new ZipFile();
    for (const entry of entries) zip.addFile(join(folder, entry), entry, { mtime: TIME, mode: 0o100644 });
    zip.end();
    await pipeline(zip.outputStream, createWriteStream(file));
  } else {
    await create({ gzip: { level: 6, portable: true }, portable: true, mtime: TIME, cwd: folder, file }, entries);
  }
}

/** Writes the checksums of all present archives in the format of `sha256sum --check`, and returns their names. */
export function writeSums() {
  const names = PLATFORMS.map(archiveName).filter((name) => readdirSync(ARCHIVES).includes(name));
  const sum = (name) =>
    createHash('sha256')
      .update(readFileSync(join(ARCHIVES, name)))
      .digest('hex');
  writeFileSync(join(ARCHIVES, 'SHA256SUMS'), names.map((name) => `${sum(name)}  ${name}\n`).join(''));
  return names;
}

await asProgram(import.meta.url, async (args) => {
  const platforms = chosenPlatforms(args.filter((argument) => argument !== '--local'));
  makePackages(platforms, { isLocal: args.includes('--local') });
  mkdirSync(ARCHIVES, { recursive: true });
  for (const platform of platforms) {
    const file = join(ARCHIVES, archiveName(platform));
    const folder = stage(platform);
    await pack(folder, file);
    copyFileSync(join(folder, TOP, SBOM), join(ARCHIVES, `${TOP}-${platform.archive}.${SBOM}`));
    process.stdout.write(`archive: ${file}\n`);
  }
  writeSums();
});
