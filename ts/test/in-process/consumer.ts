/** A project in which the package is installed. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Returns a folder with `files`, in which this package and the named `packages` are installed. */
export function consumerFolder(
  test: TestContext,
  files: Readonly<Record<string, string>>,
  packages: readonly string[] = ['@types/node'],
): string {
  const folder = temporaryFolder(test);
  link(REPOSITORY, join(folder, 'node_modules', '@svc', 'server'));
  for (const name of packages) link(join(REPOSITORY, 'node_modules', name), join(folder, 'node_modules', name));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  // On Windows, a junction needs no privilege, unlike a symbolic link.
  symlinkSync(target, path, 'junction');
}

/** Runs the TypeScript compiler in `folder`, in strict mode and with the given `module` mode; it writes no files. */
export function typeCheck(folder: string, module: string, files: readonly string[]): Promise<Ended> {
  const tsc = join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc');
  const modes = module === 'bundler' ? ['--module', 'esnext', '--moduleResolution', 'bundler'] : ['--module', module];
  const strict = ['--strict', '--noEmit', '--skipLibCheck', 'false', '--exactOptionalPropertyTypes'];
  const args = [tsc, ...modes, ...strict, '--target', 'es2022', '--types', 'node', ...files];
  return runCommand(process.execPath, { args, cwd: folder });
}
