/** The Python of the system tests: `scripts/test-system.mjs` makes it, with the packages of the reference in it. */
import { join } from 'node:path';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, type RunOptions, runCommand } from '../addon/program.ts';

/** The folder of the tiny models, of `make.py` and of `reference.py`. */
export const FIXTURES = join(REPOSITORY, 'crates', 'engine', 'tests', 'fixtures');

/** Runs a script of this folder. */
export function runScript(name: string, args: readonly string[], input?: string): Promise<Ended> {
  return runPython([join(REPOSITORY, 'ts', 'test', 'system', name), ...args], input === undefined ? {} : { input });
}

/** Runs Python. */
export function runPython(args: readonly string[], { env, ...options }: RunOptions = {}): Promise<Ended> {
  const { SYSTEM_TEST_PYTHON: python = 'python3' } = process.env;
  // Nothing is left behind in the repository.
  const own = { PYTHONDONTWRITEBYTECODE: '1', ...env };
  return runCommand(python, { timeoutMs: 300_000, ...options, args, env: own });
}
