/** Runs every test of Rust and TypeScript, and ends with one line that counts all of them. */
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { ONNX_RUNTIME } from './platform.mjs';
import { filesUnder } from './stamp.mjs';
import { cargoTests, close, nodeTests } from './test-run.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

// With `--no-fail-fast`, a failing test binary does not keep the others from running.
const rust = ['--release', '--locked', '--workspace', '--no-fail-fast'];
const files = filesUnder(join('dist', 'test')).filter((file) => file.endsWith('.test.js'));
close([await cargoTests(rust, { SVC_RUNTIME: resolve(ONNX_RUNTIME) }), await nodeTests(files)]);
// A program that a test left behind may hold a pipe of this process, which would then never end.
process.exit();
