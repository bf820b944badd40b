/**
 * Makes dist/app/, the program as it is run: each command in one file or a few, with the packages that it uses. Reading
 * hundreds of small files one by one would take most of the time between the start of the process and its first answer.
 * Also makes dist/lib/, which other programs import.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const OUT = join('dist', 'app');
const LIBRARY = join('dist', 'lib');

/** Returns the folder of the package that a bundled file belongs to; undefined for a file of our own. */
function packageFolder(file) {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
}

/** Returns a package's name, version and licence, and the text of the licence if the package has one. */
function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  const text = file === undefined ? '' : `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  return `${name} ${version} (${license})\n${text}`;
}

/** Writes the licences of all packages in the bundle, which require to be kept with every copy of their code. */
function writeNotices({ inputs, file }) {
  const folders = [...new Set(inputs.map(packageFolder))].filter((folder) => folder !== undefined);
  // An input that is itself a bundle has a file with the notices of its parts next to it.
  const bundled = inputs.map((input) => `${input}.LICENSE.txt`).filter((path) => existsSync(path));
  const notices = [...folders.sort().map(notice), ...bundled.map((path) => readFileSync(path, 'utf8'))];
  writeFileSync(file, notices.join(`\n${'-'.repeat(80)}\n\n`));
}

/** Bundles into a folder by esbuild's `options`, and writes the notices of the bundled packages next to the bundle. */
export function bundle(outdir, options) {
  // esbuild's command is a script or a binary, depending on the installation; its module is the same everywhere.
  const { metafile } = createRequire(import.meta.url)('esbuild').buildSync({
    outdir,
    bundle: true,
    metafile: true,
    format: 'esm',
    legalComments: 'none',
    ...options,
  });
  writeNotices({ inputs: Object.keys(metafile.inputs), file: join(outdir, 'third-party-notices.txt') });
}

/** Bundles the program from its TypeScript sources. */
export function bundleProgram() {
  rmSync(OUT, { recursive: true, force: true });
  bundle(OUT, {
    entryPoints: { cli: 'ts/src/cli.ts', beside: 'ts/src/commands/beside.ts' },
    splitting: true,
    platform: 'node',
    target: 'node20',
    // Of a package that is made for both module systems, the ES module is taken, which can be split.
    mainFields: ['module', 'main'],
    banner: {
      js: "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);",
    },
  });
}

/**
 * The line that gives the library its own place. A bundler that makes a CommonJS program of the ES module leaves
 * `import.meta` empty; there `__filename` is defined.
 */
const OWN_PLACE = {
  cjs: "const bundleUrl = require('node:url').pathToFileURL(__filename).href;",
  esm: "import { pathToFileURL as urlOf } from 'node:url'; const bundleUrl = import.meta.url ?? urlOf(__filename).href;",
};

/**
 * Bundles the library, one file for each module system: bundlers that make ES modules cannot take a `require`. A process
 * may have both copies, so an error of one is an instance of the class in the other. The types are those that tsc has
 * made, once for each module system.
 */
export function bundleLibrary() {
  rmSync(LIBRARY, { recursive: true, force: true });
  for (const [format, ending] of [
    ['cjs', '.cjs'],
    ['esm', '.js'],
  ]) {
    bundle(LIBRARY, {
      entryPoints: { index: 'ts/src/in-process/index.ts' },
      outExtension: { '.js': ending },
      format,
      platform: 'node',
      target: 'node20',
      mainFields: ['module', 'main'],
      define: { 'import.meta.url': 'bundleUrl' },
      banner: { js: OWN_PLACE[format] },
    });
  }
  writeTypes(join('in-process', 'index'), new Set());
}

/** Copies the declarations of a compiled file, and those of the files that it imports, into the library's folder. */
function writeTypes(stem, done) {
  if (done.has(stem)) return;
  done.add(stem);
  const text = readFileSync(join('dist', 'src', `${stem}.d.ts`), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, '');
  const imports = /(?<=\bfrom '|\bimport\(')(\.[^']+)\.ts(?=')/g;
  mkdirSync(dirname(join(LIBRARY, 'types', stem)), { recursive: true });
  for (const [types, module] of [
    ['.d.ts', '.js'],
    ['.d.cts', '.cjs'],
  ]) {
    writeFileSync(join(LIBRARY, 'types', stem + types), text.replace(imports, `$1${module}`));
  }
  for (const [, path] of text.matchAll(imports)) writeTypes(join(dirname(stem), path), done);
}
