/**
 * Runs the tests of the stacks: each public package in its pinned version against a running server, with the snippets of
 * docs/stacks/. It needs Python 3.11 or newer, Python 3.13 for Home Assistant's client, and Go for the OpenTelemetry
 * collector, and fetches the packages into a folder that is removed afterwards; with --keep FOLDER it keeps them there.
 * With --only NAME it runs the files with NAME in their names, and fetches no more than these need. The last line counts
 * the results.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { filesUnder } from './stamp.mjs';
import { close, nodeTests } from './test-run.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const { values } = parseArgs({ options: { keep: { type: 'string' }, only: { type: 'string' } } });

const REQUIREMENTS = join('ts', 'test', 'stacks', 'requirements');
const COLLECTOR = join('ts', 'test', 'stacks', 'collector');
/** The longest time of one file: LiteLLM's proxy takes most of a minute to start on a slow machine. */
const TIMEOUT_MS = 20 * 60_000;

/** The oldest Python that a list of packages needs, where it is not 3.11. */
const OLDEST_PYTHON = new Map([['home-assistant', 13]]);

function run(command, args, options = {}) {
  process.stdout.write(`test: ${command} ${args.join(' ')}\n`);
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'], ...options });
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? `exit code ${status}`}`);
}

/** Returns a command that runs Python 3 with at least this minor version. */
function pythonCommand(oldest) {
  const names = ['python3', ...[11, 12, 13, 14, 15].map((minor) => `python3.${minor}`)];
  const check = `import sys; sys.exit(sys.version_info < (3, ${oldest}))`;
  const found = names.find((name) => spawnSync(name, ['-c', check], { stdio: 'ignore' }).status === 0);
  if (found === undefined) throw new Error(`please install Python 3.${oldest} or newer`);
  return found;
}

/** Makes the virtual environment of a list of packages in `folder`, unless it was kept. */
function makeEnvironment(folder, file) {
  const name = basename(file, '.txt');
  const done = join(folder, name, 'done');
  if (existsSync(done)) return;
  run(pythonCommand(OLDEST_PYTHON.get(name) ?? 11), ['-m', 'venv', join(folder, name)]);
  run(join(folder, name, 'bin', 'python'), ['-m', 'pip', 'install', '-q', '-r', join(REQUIREMENTS, file)]);
  writeFileSync(done, '');
}

function makeCollector(folder) {
  if (existsSync(join(folder, 'collector'))) return;
  const options = { cwd: COLLECTOR, env: { ...process.env, CGO_ENABLED: '0' } };
  run('go', ['build', '-trimpath', '-o', join(folder, 'collector'), '.'], options);
}

const folder = values.keep === undefined ? mkdtempSync(join(tmpdir(), 'svc-test-stacks-')) : resolve(values.keep);
mkdirSync(folder, { recursive: true });
try {
  const isWanted = (name) => values.only === undefined || name.includes(values.only);
  const files = filesUnder(join('dist', 'test')).filter((file) => file.endsWith('.stacks.js') && isWanted(file));
  const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
  for (const file of readdirSync(REQUIREMENTS)) {
    if (text.includes(`'${basename(file, '.txt')}'`)) makeEnvironment(folder, file);
  }
  if (text.includes('collectorProgram')) makeCollector(folder);
  close([await nodeTests(files, { env: { STACKS_FOLDER: folder }, timeout: TIMEOUT_MS })]);
} catch (error) {
  process.stdout.write(`test: ${error.message}\n0 passed, 1 failed\n`);
  process.exitCode = 1;
} finally {
  if (values.keep === undefined) rmSync(folder, { recursive: true, force: true });
}
process.exit();
