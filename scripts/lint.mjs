/** Runs every formatter and linter, even after a failure, and fails if one of them does. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const CHECKS = [
  ['cargo', 'fmt', '--all', '--check'],
  ['cargo', 'clippy', '--locked', '--workspace', '--all-targets', '--all-features', '--', '-D', 'warnings'],
  [process.execPath, join('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'ts', '--noEmit'],
  [process.execPath, join('node_modules', 'typescript', 'bin', 'tsc'), '-p', join('ts', 'browser')],
  [process.execPath, join('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--error-on-warnings'],
  [process.execPath, join('scripts', 'sentences.mjs')],
];

/** The program that tells whether Python can lint: it is new enough and can make a virtual environment. */
const CAN_LINT = 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))';
/** The virtual environment of the linters for Python. */
const ENVIRONMENT = join('dist', 'lint', 'python');

/**
 * Returns the checks of the Python code, which begin with the installation of its linters. Without Python there are
 * none, except in CI, where Python must be there.
 */
function pythonChecks() {
  const test = ['python3', '-c', CAN_LINT];
  if (spawnSync(test[0], test.slice(1), { stdio: 'ignore' }).status !== 0) {
    if (process.env.CI) return [test];
    process.stdout.write('lint: without Python 3.11 or newer and its module venv, training/ is not linted\n');
    return [];
  }
  const isWindows = process.platform === 'win32';
  const python = isWindows ? join(ENVIRONMENT, 'Scripts', 'python.exe') : join(ENVIRONMENT, 'bin', 'python');
  const run = (...args) => [python, '-m', ...args];
  const settings = join('training', 'pyproject.toml');
  return [
    ...(existsSync(python) ? [] : [['python3', '-m', 'venv', ENVIRONMENT]]),
    run('pip', 'install', '-q', '--disable-pip-version-check', '-r', join('training', 'requirements-lint.txt')),
    run('ruff', 'format', '--check', '--cache-dir', join('dist', 'lint', 'ruff'), 'training'),
    run('ruff', 'check', '--cache-dir', join('dist', 'lint', 'ruff'), 'training'),
    run('mypy', '--config-file', settings, '--cache-dir', join('dist', 'lint', 'mypy'), 'training'),
  ];
}

const checks = [...CHECKS, ...pythonChecks()];
const failed = checks.filter(([command, ...args]) => {
  const name = [command === process.execPath ? 'node' : command, ...args].join(' ');
  process.stdout.write(`lint: ${name}\n`);
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (error) process.stderr.write(`lint: ${command}: ${error.message}\n`);
  return status !== 0;
});
process.stdout.write(`${checks.length - failed.length} of ${checks.length} checks passed\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
