/** The environments of the stacks, which `scripts/test-stacks.mjs` makes in a folder that it names. */
import { join } from 'node:path';
import { type Ended, type RunOptions, runCommand } from '../addon/program.ts';

/** Returns a path in the folder of the environments. */
function inEnvironments(...path: readonly string[]): string {
  const { STACKS_FOLDER: folder } = process.env;
  if (folder === undefined) throw new Error('STACKS_FOLDER is not set: run npm run test:stacks');
  return join(folder, ...path);
}

/** Returns the path of a program of the virtual environment `name`, one of `requirements/`. */
export function pythonProgram(name: string, program: string): string {
  return inEnvironments(name, 'bin', program);
}

/** Returns the path of the OpenTelemetry collector. */
export function collectorProgram(): string {
  return inEnvironments('collector');
}

/** The longest time of one snippet: some frameworks take many seconds to be imported. */
const TIMEOUT_MS = 300_000;

/** Runs lines of Python in the virtual environment `name`. */
export function runSnippet(name: string, text: string, { env, ...options }: RunOptions = {}): Promise<Ended> {
  const own = { PYTHONDONTWRITEBYTECODE: '1', ...env };
  return runCommand(pythonProgram(name, 'python'), { timeoutMs: TIMEOUT_MS, ...options, args: ['-c', text], env: own });
}
