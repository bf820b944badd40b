/** Runs test runners, shows their output, and counts the tests that passed and failed. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import process from 'node:process';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { stripVTControlCharacters } from 'node:util';

/** The signals by which a terminal or a service ends this process. */
const STOPPING = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Runs a command, shows its output as it comes, and returns its exit code and all of the output. After `limitMs` it is
 * ended with the processes that it has started.
 */
async function show(command, args, { env = {}, limitMs } = {}) {
  process.stdout.write(`test: ${command === process.execPath ? 'node' : command} ${args.slice(0, 3).join(' ')}\n`);
  // A group of its own lets all of its processes be ended; the terminal's signals do not reach that group.
  const isGroup = limitMs !== undefined && process.platform !== 'win32';
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = spawn(command, args, { stdio, env: { ...process.env, ...env }, detached: isGroup });
  const end = () => (isGroup ? process.kill(-child.pid, 'SIGKILL') : child.kill('SIGKILL'));
  const leave = () => {
    end();
    process.exit(1);
  };
  if (isGroup) for (const signal of STOPPING) process.on(signal, leave);
  const timer =
    limitMs &&
    setTimeout(() => {
      process.stderr.write(`test: ${command}: not at its end after ${limitMs / 1000} s\n`);
      end();
    }, limitMs);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
    process.stdout.write(text);
  });
  const exitCode = await new Promise((done) => {
    child.on('error', (error) => {
      process.stderr.write(`test: ${command}: ${error.message}\n`);
      done(1);
    });
    child.on('close', (code) => done(code ?? 1));
  });
  clearTimeout(timer);
  for (const signal of STOPPING) process.off(signal, leave);
  return { exitCode, output: stripVTControlCharacters(output) };
}

function sum(output, pattern) {
  return [...output.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);
}

/** Runs `cargo test`, and counts the tests that passed and failed. The build may take as long as it needs. */
export async function cargoTests(args, env, limitMs = CARGO_TIMEOUT_MS) {
  const build = await show('cargo', ['test', '--no-run', ...args], { env });
  const { exitCode, output } = build.exitCode === 0 ? await show('cargo', ['test', ...args], { env, limitMs }) : build;
  const passed = sum(output, /^test result: .*?(\d+) passed/gm);
  const failed = sum(output, /^test result: .*?(\d+) failed/gm);
  return { name: 'cargo test', exitCode, passed, failed };
}

/** The longest time of all tests of Rust, which take about a minute. */
const CARGO_TIMEOUT_MS = 30 * 60_000;

/** The longest time of one file of tests. It is long enough for a busy machine, and ends a test that waits for ever. */
const TIMEOUT_MS = 10 * 60_000;

/** The number of test files that run at once: one more than there are cores, since some wait for servers and timers. */
const CONCURRENCY = availableParallelism() + 1;

/**
 * Runs compiled test files with Node's runner, some of them at the same time, and counts the tests. A skipped test has
 * not passed.
 */
export async function nodeTests(files, { env = {}, timeout = TIMEOUT_MS } = {}) {
  const name = 'node:test';
  // Without files, Node would look for tests itself, and find these scripts.
  if (files.length === 0) return { name, exitCode: 1, passed: 0, failed: 0 };
  process.stdout.write(`test: ${name}, ${files.length} files, ${CONCURRENCY} at a time\n`);
  Object.assign(process.env, env);
  const counts = { passed: 0, failed: 0 };
  const tests = run({ files: files.map((file) => resolve(file)), concurrency: CONCURRENCY, timeout });
  tests.on('test:diagnostic', ({ message }) => {
    counts.passed += sum(message, /^pass (\d+)$/g);
    counts.failed += sum(message, /^(?:fail|cancelled|skipped|todo) (\d+)$/g);
  });
  for await (const text of tests.compose(spec)) process.stdout.write(text);
  return { name, exitCode: counts.failed === 0 ? 0 : 1, ...counts };
}

/** Runs test files with pytest, and counts the tests. A skipped test has not passed. */
export async function pythonTests(python, args) {
  const { exitCode, output } = await show(python, ['-m', 'pytest', '-q', '--color=no', '--durations=10', ...args]);
  const last = output.trimEnd().split('\n').at(-1);
  return {
    name: 'pytest',
    exitCode,
    passed: sum(last, /(\d+) passed/g),
    failed: sum(last, /(\d+) (?:failed|errors?|skipped)/g),
  };
}

/** Ends the output with one line that counts all results, and sets the exit code 1 unless all tests passed. */
export function close(results) {
  for (const { name, exitCode, passed, failed } of results) {
    if (passed + failed === 0) process.stdout.write(`${name}: no test has run\n`);
    else if (exitCode !== 0 && failed === 0) process.stdout.write(`${name}: exit code ${exitCode}\n`);
  }
  const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
  process.stdout.write(`${total('passed')} passed, ${total('failed')} failed\n`);
  const isWell = results.every(({ exitCode, passed, failed }) => exitCode === 0 && passed > 0 && failed === 0);
  process.exitCode = isWell ? 0 : 1;
}
