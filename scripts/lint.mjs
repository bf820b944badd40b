/** Runs every formatter and linter, even after a failure, and fails if one of them does. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const CHECKS = [
  ['cargo', 'fmt', '--all', '--check'],
  ['cargo', 'clippy', '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings'],
  [process.execPath, join('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'ts', '--noEmit'],
  [process.execPath, join('node_modules', 'typescript', 'bin', 'tsc'), '-p', join('ts', 'browser')],
  [process.execPath, join('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings'],
  [process.execPath, join('scripts', 'sentences.mjs')],
];

const failed = CHECKS.filter(([command, ...args]) => {
  const name = [command === process.execPath ? 'node' : command, ...args].join(' ');
  process.stdout.write(`lint: ${name}\n`);
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (error) process.stderr.write(`lint: ${command}: ${error.message}\n`);
  return status !== 0;
});
process.stdout.write(`${CHECKS.length - failed.length} of ${CHECKS.length} checks passed\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
