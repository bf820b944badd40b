/**
 * Makes the npm packages of a release as folders in dist/release/node_modules/, laid out as in an installation:
 * `node scripts/release/packages.mjs [--local] [PLATFORM...]`. It needs `npm run build`, and for each platform its
 * addon from `engine.mjs`; with `--local` it takes the addon of the build instead, for tests on this machine.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { ADDON, ADDON_NAME, runtimeFiles } from '../platform.mjs';
import { repositoryUrl } from './address.mjs';
import { asProgram } from './command.mjs';
import { crateNotices, linkedCrates } from './crates.mjs';
import { packLinks } from './links.mjs';
import {
  chosenPlatforms,
  engineFolder,
  enginePackage,
  PLATFORMS,
  packageFolder,
  ROOT_PACKAGE,
  VERSION,
} from './platforms.mjs';

/** The name of the package that users install; `MODEL` is that of the embedded model. */
export const MAIN = ROOT_PACKAGE.name;
export const MODEL = '@svc/model-small';

const MODEL_FOLDER = join('models', 'svc-small');

/**
 * The files of the main package in addition to its `package.json`. Its scripts, styles and pages are all bundled. The
 * documentation is there to be read without a network.
 */
const MAIN_FILES = [
  ...['bin', 'dist/app', 'dist/assets', 'dist/docs', 'dist/lib', 'docs', 'examples'],
  ...['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md'],
];

/** The fields that are the same in every package. */
const COMMON = {
  version: VERSION,
  license: ROOT_PACKAGE.license,
  homepage: `${repositoryUrl()}#readme`,
  bugs: `${repositoryUrl()}/issues`,
  // The provenance of the packages is checked against this.
  repository: { type: 'git', url: `git+${repositoryUrl()}.git` },
  // Other programs open the files of the packages, and none of them can look into an archive of Yarn.
  preferUnplugged: true,
};

function startPackage(description) {
  const folder = packageFolder(description.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
  copyFileSync('LICENSE', join(folder, 'LICENSE'));
  return folder;
}

/** Makes the main package. The bundles contain all packages that they use, so only the parts remain to be installed. */
function makeMain() {
  const { name, description, keywords, type, engines, bin, main, types, exports } = ROOT_PACKAGE;
  const folder = startPackage({
    name,
    description,
    keywords,
    ...COMMON,
    ...{ type, engines, bin, main, types, exports },
    files: MAIN_FILES,
    dependencies: { [MODEL]: VERSION },
    optionalDependencies: Object.fromEntries(PLATFORMS.map((platform) => [enginePackage(platform), VERSION])),
  });
  // The pages of the package show the pictures from the repository.
  const filter = (path) => path !== join('docs', 'images');
  for (const path of MAIN_FILES) cpSync(path, join(folder, path), { recursive: true, filter });
  packLinks(folder);
}

function makeModel() {
  const description = `The model that comes with ${MAIN}: what it is and how well it decides is in README.md.`;
  const folder = startPackage({ name: MODEL, description, ...COMMON });
  cpSync(MODEL_FOLDER, folder, { recursive: true });
  packLinks(folder, MODEL_FOLDER.replaceAll('\\', '/'));
}

function makeEngine(platform, isLocal) {
  const { name, os, cpu, libc } = platform;
  const addon = isLocal ? ADDON : join(engineFolder(platform), ADDON_NAME);
  if (!existsSync(addon)) throw new Error(`${addon} is not there: run node scripts/release/engine.mjs ${name} first`);
  const folder = startPackage({
    name: enginePackage(platform),
    description: `The native part of ${MAIN} for ${name}, with ONNX Runtime.`,
    ...COMMON,
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
  });
  copyFileSync(addon, join(folder, basename(addon)));
  for (const file of runtimeFiles(os, cpu)) copyFileSync(file.path, join(folder, file.name));
  copyFileSync(join('npm', 'onnxruntime-license.txt'), join(folder, 'onnxruntime-license.txt'));
  writeFileSync(join(folder, 'third-party-notices.txt'), crateNotices(linkedCrates(platform)));
}

/** Makes the packages for `platforms`, and returns the folder that holds them. */
export function makePackages(platforms, { isLocal = false } = {}) {
  makeMain();
  makeModel();
  for (const platform of platforms) makeEngine(platform, isLocal);
  return dirname(dirname(packageFolder(MAIN)));
}

await asProgram(import.meta.url, (args) => {
  const names = args.filter((argument) => argument !== '--local');
  const folder = makePackages(chosenPlatforms(names), { isLocal: args.includes('--local') });
  process.stdout.write(`packages: ${folder}\n`);
});
