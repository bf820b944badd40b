/** Runs other programs for the scripts of a release. */
import { spawnSync } from 'node:child_process';
import process from 'node:process';

/** Runs a program, and returns its `status`, its `signal`, and its output if `options.stdio` pipes it. */
export function attempt(command, args, options = {}) {
  // On Windows, npm is a script, which only a shell can start.
  const shell = command === 'npm' && process.platform === 'win32';
  const ended = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 28, shell, ...options });
  if (ended.error?.code === 'ENOENT') throw new Error(`${command} is not installed`);
  if (ended.error) throw new Error(`${command}: ${ended.error.message}`);
  return ended;
}

/** Runs a program whose output is shown, and throws unless it succeeds. */
export function run(command, args, options = {}) {
  requireSuccess(command, args, attempt(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options }));
}

/** Runs a program, and returns its stdout; throws and shows its stderr if it fails. */
export function output(command, args, options = {}) {
  const ended = attempt(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  if (ended.status !== 0) process.stderr.write(ended.stderr);
  requireSuccess(command, args, ended);
  return ended.stdout;
}

function requireSuccess(command, args, { status, signal }) {
  const name = command === process.execPath ? 'node' : command;
  if (status !== 0) throw new Error(`${name} ${args[0]} failed (${signal ?? `exit code ${status}`})`);
}
