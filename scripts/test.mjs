/** Runs every test, Rust and TypeScript, and ends with one line that counts them all. */
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { ONNX_RUNTIME } from './platform.mjs';
import { filesUnder } from './stamp.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** Runs a command, shows what it prints as it comes, and returns all of it. */
async function show(command, args, env) {
  process.stdout.write(`test: ${command === process.execPath ? 'node' : command} ${args.slice(0, 3).join(' ')}\n`);
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
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
  return { exitCode, output: stripVTControlCharacters(output) };
}

function sum(output, pattern) {
  return [...output.matchAll(pattern)].reduce((total, match) => total + Number(match[1]), 0);
}

async function testRust() {
  // A test binary that fails does not keep the others from running.
  const args = ['test', '--release', '--locked', '--workspace', '--no-fail-fast'];
  const { exitCode, output } = await show('cargo', args, { SVC_RUNTIME: resolve(ONNX_RUNTIME) });
  const passed = sum(output, /^test result: .*?(\d+) passed/gm);
  const failed = sum(output, /^test result: .*?(\d+) failed/gm);
  return { name: 'cargo test', exitCode, passed, failed };
}

async function testTypeScript() {
  const files = filesUnder(join('dist', 'test')).filter((file) => file.endsWith('.test.js'));
  const { exitCode, output } = await show(process.execPath, ['--test', '--test-reporter=spec', ...files]);
  const passed = sum(output, /^ℹ pass (\d+)/gm);
  const failed = sum(output, /^ℹ (?:fail|cancelled|skipped|todo) (\d+)/gm);
  return { name: 'node --test', exitCode, passed, failed };
}

const results = [await testRust(), await testTypeScript()];
for (const { name, exitCode, passed, failed } of results) {
  if (passed + failed === 0) process.stdout.write(`${name}: no test has run\n`);
  else if (exitCode !== 0 && failed === 0) process.stdout.write(`${name}: exit code ${exitCode}\n`);
}
const passed = results.reduce((total, result) => total + result.passed, 0);
const failed = results.reduce((total, result) => total + result.failed, 0);
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = results.every(({ exitCode, passed, failed }) => exitCode === 0 && passed > 0 && failed === 0)
  ? 0
  : 1;
