/**
 * Makes dist/app/, the program as it is run: each command in one file or few, with the packages that it uses. Reading
 * hundreds of small files one by one would be most of the time between the start of the process and its first answer.
 * And dist/lib/, what other programs import.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const OUT = join('dist', 'app');
const LIBRARY = join('dist', 'lib');

/** The folder of the package that a bundled file belongs to; nothing for a file of our own. */
function packageFolder(file) {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
}

/** A package's name, version, licence, and the text of it where the package has one. */
function notice(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  const text = file === undefined ? '' : `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  return `${name} ${version} (${license})\n${text}`;
}

/** The licences of all packages in the bundle ask to be kept with every copy of their code. */
function writeNotices({ inputs, file }) {
  const folders = [...new Set(inputs.map(packageFolder))].filter((folder) => folder !== undefined);
  // A file that is itself a bundle has the notices of what is in it beside it.
  const bundled = inputs.map((input) => `${input}.LICENSE.txt`).filter((path) => existsSync(path));
  const notices = [...folders.sort().map(notice), ...bundled.map((path) => readFileSync(path, 'utf8'))];
  writeFileSync(file, notices.join(`\n${'-'.repeat(80)}\n\n`));
}

/** Bundles into a folder as esbuild's `options` say, and writes the notices of what is in the bundle beside it. */
export function bundle(outdir, options) {
  // Its command is a script or a binary, whichever way it was installed; its module is the same for all.
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
    // A package that is made for both module systems is taken in the one that can be split.
    mainFields: ['module', 'main'],
    banner: {
      js: "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);",
    },
  });
}

/**
 * Bundles the library: one file for `require`, which `import` gets as well, since two copies would be two classes of each
 * error. The types are those that tsc has made, once for each module system.
 */
export function bundleLibrary() {
  rmSync(LIBRARY, { recursive: true, force: true });
  bundle(LIBRARY, {
    entryPoints: { index: 'ts/src/in-process/index.ts' },
    outExtension: { '.js': '.cjs' },
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: "const bundleUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  writeFileSync(join(LIBRARY, 'index.js'), "export * from './index.cjs';\n");
  writeTypes(join('in-process', 'index'), new Set());
}

/** Copies the declarations of a compiled file, and of those that it imports, into the library's folder. */
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
