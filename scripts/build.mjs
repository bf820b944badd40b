/**
 * Brings node_modules/ and dist/ up to date: dependencies, TypeScript, the Rust addon, ONNX Runtime. Each step runs
 * only if its inputs have changed. This script needs nothing except Node, since it runs before anything is installed.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { ADDON_TYPES, addonTypes } from './addon-types.mjs';
import { bundle, bundleLibrary, bundleProgram } from './bundle.mjs';
import { ADDON, builtLibrary, PLATFORM, RUNTIME_FILES } from './platform.mjs';
import { filesUnder, whenChanged } from './stamp.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const STAMPS = join('dist', '.stamps');
const PAGES = join('ts', 'browser');

function stop(message) {
  process.stderr.write(`build: ${message}\n`);
  process.exit(1);
}

function run(command, args, whenMissing) {
  process.stdout.write(`build: ${[command === process.execPath ? 'node' : command, ...args].join(' ')}\n`);
  // On Windows, npm is a script, which only a shell can start.
  const shell = process.platform === 'win32' && command === 'npm';
  const { error, status, signal } = spawnSync(command, args, { stdio: 'inherit', shell });
  if (error) stop(error.code === 'ENOENT' && whenMissing ? whenMissing : `${command}: ${error.message}`);
  if (status !== 0)
    stop(`${command === process.execPath ? args[0] : command} failed (${signal ?? `exit code ${status}`})`);
}

/**
 * Whether all packages are installed, by the list that npm keeps in node_modules/. Only optional packages, which are
 * made for other platforms, may be missing.
 */
function isInstalled() {
  const note = join('node_modules', '.package-lock.json');
  if (!existsSync(note)) return false;
  const [wanted, present] = ['package-lock.json', note].map((file) => JSON.parse(readFileSync(file, 'utf8')).packages);
  const isSame = ([path, entry]) =>
    present[path] ? present[path].integrity === entry.integrity : entry.optional === true;
  const isWanted = (path) => wanted[path] !== undefined && existsSync(path);
  const entries = Object.entries(wanted).filter(([path]) => path !== '');
  return entries.every(isSame) && Object.keys(present).every(isWanted);
}

/** Removes compiled files whose source is gone, which would otherwise still be run; tests above all. */
function removeStale() {
  for (const file of [join('dist', 'src'), join('dist', 'test')].flatMap(filesUnder)) {
    const stem = /^dist.(.+?)(\.d\.ts|\.js|\.js\.map)$/.exec(file)?.[1];
    if (stem !== undefined && !existsSync(join('ts', `${stem}.ts`))) rmSync(file);
  }
}

function compileTypeScript() {
  removeStale();
  run(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'ts']);
}

/** Bundles the operator pages' own files: their style, and their script together with the chart library. */
function bundlePages() {
  run(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '-p', PAGES]);
  bundle(join('dist', 'assets'), {
    entryPoints: ['main.ts', 'style.css', 'icon.svg'].map((file) => join(PAGES, file)),
    minify: true,
    target: 'es2022',
    loader: { '.svg': 'copy' },
  });
}

/** Bundles the page of the API: its renderer, with our settings for it. */
function bundleDocs() {
  const entries = ['main.ts', 'style.css'].map((file) => join(PAGES, 'docs', file));
  bundle(join('dist', 'docs'), { entryPoints: entries, minify: true, target: 'es2022' });
}

function compileRust() {
  const whenMissing = 'cargo is not installed. Rust is needed: https://rustup.rs';
  run('cargo', ['build', '--release', '--locked', '-p', 'svc-engine'], whenMissing);
  if (readFileSync(ADDON_TYPES, 'utf8') !== addonTypes()) {
    stop(`${ADDON_TYPES} differs from the addon: node scripts/addon-types.mjs writes it again`);
  }
  copy({ from: builtLibrary(process.platform), to: ADDON });
}

/** Replaces a file in one step: a running server keeps the old file open, and no process ever loads half a file. */
function copy({ from, to }) {
  if (isSameFile(from, to)) return;
  process.stdout.write(`build: copy ${from} to ${to}\n`);
  mkdirSync(dirname(to), { recursive: true });
  const temporary = `${to}.${process.pid}.tmp`;
  copyFileSync(from, temporary);
  try {
    renameSync(temporary, to);
  } catch {
    // Windows allows renaming a library that is in use, but not replacing it.
    renameSync(to, `${to}.${process.pid}.old`);
    renameSync(temporary, to);
  }
}

function isSameFile(from, to) {
  if (!existsSync(to) || statSync(from).size !== statSync(to).size) return false;
  return readFileSync(from).equals(readFileSync(to));
}

/**
 * Provides a command `exec` on Windows. `npm start` begins with `exec`, so that no shell stands between npm and the
 * server: a shell would also get the terminal's Ctrl-C and die of it, and npm would then report a failure. cmd.exe does
 * not die of it, but has no `exec`.
 */
function provideExec() {
  if (process.platform === 'win32') writeFileSync(join('node_modules', '.bin', 'exec.cmd'), '@%*\r\n');
}

if (!PLATFORM) stop(`there is no ONNX Runtime for ${process.platform}`);
if (!isInstalled()) run('npm', ['ci', '--ignore-scripts']);
provideExec();
whenChanged({
  stamp: join(STAMPS, 'typescript'),
  inputs: ['ts', 'package-lock.json'],
  outputs: [join('dist', 'src', 'cli.js')],
  work: compileTypeScript,
});
whenChanged({
  stamp: join(STAMPS, 'app'),
  inputs: [join('ts', 'src'), join('scripts', 'bundle.mjs'), 'package-lock.json'],
  outputs: [join('dist', 'app', 'cli.js')],
  work: bundleProgram,
});
whenChanged({
  stamp: join(STAMPS, 'lib'),
  inputs: [join('ts', 'src'), join('scripts', 'bundle.mjs'), 'package-lock.json'],
  outputs: [join('dist', 'lib', 'index.js')],
  work: bundleLibrary,
});
whenChanged({
  stamp: join(STAMPS, 'pages'),
  inputs: [
    PAGES,
    join('ts', 'src', 'dashboard'),
    join('ts', 'src', 'schemas'),
    join('scripts', 'bundle.mjs'),
    'package-lock.json',
  ],
  outputs: [join('dist', 'assets', 'third-party-notices.txt')],
  work: bundlePages,
});
whenChanged({
  stamp: join(STAMPS, 'docs'),
  inputs: [join(PAGES, 'docs'), join('scripts', 'bundle.mjs'), 'package-lock.json'],
  outputs: [join('dist', 'docs', 'third-party-notices.txt')],
  work: bundleDocs,
});
whenChanged({
  stamp: join(STAMPS, 'rust'),
  inputs: ['crates', 'Cargo.toml', 'Cargo.lock', ADDON_TYPES, join('scripts', 'addon-types.mjs')],
  outputs: [ADDON],
  work: compileRust,
});
for (const file of RUNTIME_FILES) {
  if (!existsSync(file.from)) stop(`there is no ONNX Runtime for ${process.platform} ${process.arch}`);
  copy(file);
}
