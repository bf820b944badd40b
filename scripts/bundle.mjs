/**
 * Makes dist/app/, the program as it is run: each command in one file or few, with the packages that it uses. Reading
 * hundreds of small files one by one would be most of the time between the start of the process and its first answer.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const OUT = join('dist', 'app');

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
  writeFileSync(
    file,
    folders
      .sort()
      .map(notice)
      .join(`\n${'-'.repeat(80)}\n\n`),
  );
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
    entryPoints: { cli: 'ts/src/cli.ts', beside: 'ts/src/gate/beside.ts' },
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
