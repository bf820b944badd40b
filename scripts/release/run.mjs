/** How a script of a release runs other programs. */
import { spawnSync } from 'node:child_process';
import process from 'node:process';

/** How a program ended: `status`, `signal`, and what it said, where `options.stdio` pipes that. */
export function attempt(command, args, options = {}) {
  // npm is a script on Windows, which only a shell starts.
  const shell = command === 'npm' && process.platform === 'win32';
  const ended = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 28, shell, ...options });
  if (ended.error?.code === 'ENOENT') throw new Error(`${command} is not installed`);
  if (ended.error) throw new Error(`${command}: ${ended.error.message}`);
  return ended;
}

/** Runs a program that shows what it says, and throws unless it ends well. */
export function run(command, args, options = {}) {
  requireSuccess(command, args, attempt(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options }));
}

/** What a program prints; what else it says is shown only when it fails, which throws. */
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
