/** The Python of the system tests, which `scripts/test-system.mjs` makes with the packages of the reference. */
import { join } from 'node:path';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, type RunOptions, runCommand } from '../addon/program.ts';

/** The folder with the tiny models, `make.py` and `reference.py`. */
export const FIXTURES = join(REPOSITORY, 'crates', 'engine', 'tests', 'fixtures');

/** Runs a script of this folder. */
export function runScript(name: string, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return runPython([join(REPOSITORY, 'ts', 'test', 'system', name), ...args], options);
}

/** Runs Python with `args`. */
export function runPython(args: readonly string[], { env, ...options }: RunOptions = {}): Promise<Ended> {
  const { SYSTEM_TEST_PYTHON: python = 'python3' } = process.env;
  // Python must leave no bytecode behind in the repository.
  const own = { PYTHONDONTWRITEBYTECODE: '1', ...env };
  return runCommand(python, { timeoutMs: 300_000, ...options, args, env: own });
}
