/**
 * Changes the code in small ways, one at a time (mutants), and runs the tests of its area against each: a change that
 * no test notices shows untested code. A seed draws a sample from each area. TypeScript is changed by Stryker's
 * instrumenter, which builds all changes at once, each behind a switch; Rust by cargo-mutants, which builds each
 * change.
 *
 *     npm run test:mutants -- [--areas gate,queue] [--sample 40] [--seed 1] [--jobs 2]
 *
 * It needs `cargo install cargo-mutants` for the areas in Rust, and fetches the instrumenter from the registry of npm. It
 * prints how many changes of each area were caught, how many of these by tests that took too long, and those that were
 * not caught.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ONNX_RUNTIME } from './platform.mjs';
import { randomOf } from './random.mjs';
import { filesUnder } from './stamp.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** The areas of `ts/src`: the files of each, and its tests below `dist/test`. */
const TYPESCRIPT = {
  gate: { source: /^gate\//, tests: /^(gate\/.*|real\/gate)\.test/ },
  middleware: {
    source: /^server\/(middleware|routes)\//,
    tests: /^(http\/.*|real\/(access|limits|request-.*))\.(test|system)/,
  },
  'file-run': { source: /^file-run\//, tests: /^file-run\/.*\.(test|system)/ },
  model: { source: /^model\//, tests: /^(model\/.*|real\/reload)\.(test|system)/ },
  metrics: { source: /^stats\//, tests: /^(stats\/.*|http\/stats)\.test/ },
};
/** The areas of `crates/engine/src`: the files of each, and the integration tests that run for it beside the unit tests. */
const RUST = {
  queue: { files: ['queue/*', 'stop.rs'], tests: [] },
  wire: { files: ['wire/*', 'batch/*'], tests: ['models', 'parse_memory'] },
  onnx: { files: ['onnx/**'], tests: ['models'] },
  session: { files: ['session/*'], tests: ['models'] },
};

const INSTRUMENTER = '@stryker-mutator/instrumenter@9.6.1';
/** Mutations that are left out: tests should not pin the wording of messages. */
const LEFT_OUT = ['StringLiteral'];
/** The time limit of a mutant: this many times the tests' time without a mutant, plus this many milliseconds. */
const [SLOWER, LONGER_MS] = [3, 30_000];

const { values } = parseArgs({
  options: {
    areas: { type: 'string', default: [...Object.keys(TYPESCRIPT), ...Object.keys(RUST)].join(',') },
    sample: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
  },
});
const [size, seed, jobs] = [values.sample, values.seed, values.jobs].map(Number);
const areas = values.areas.split(',');

const say = (line) => process.stdout.write(`mutants: ${line}\n`);

/** Returns a sample of `all`, in which each element is equally likely; the elements keep their order. */
function sampleOf(all) {
  const random = randomOf(seed);
  const drawn = all.map((one) => [random(), one]).sort(([one], [other]) => one - other);
  const chosen = new Set(drawn.slice(0, size).map(([, one]) => one));
  return all.filter((one) => chosen.has(one));
}

function run(command, args, options = {}) {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 28, ...options });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${String(stderr).slice(-2000)}`);
}

/** The output of `scripts/release`, which is not copied: it is large, and no test reads it. */
const RELEASES = join('dist', 'release');

/** Makes a copy of everything that the tests need, in which `ts/src` can be changed. */
function copyOfRepository(folder) {
  for (const name of readdirSync('.')) {
    if (name === '.git' || name === 'target') continue;
    const to = join(folder, name);
    // A link to more than the packages would show in the paths that tests compare.
    if (name === 'node_modules') symlinkSync(resolve(name), to);
    else cpSync(name, to, { recursive: true, filter: (from) => from !== RELEASES });
  }
}

/** Builds all mutants of all areas into the copy, and returns a function that gives those of an area. */
async function instrument(folder) {
  const packages = join(folder, 'instrumenter');
  mkdirSync(packages);
  run('npm', ['install', '--silent', '--no-save', '--prefix', packages, INSTRUMENTER]);
  const entry = createRequire(join(packages, 'x.js')).resolve('@stryker-mutator/instrumenter');
  const { Instrumenter } = await import(pathToFileURL(entry).href);
  const silent = { debug() {}, info() {}, warn() {}, isDebugEnabled: () => false };
  const source = join(folder, 'ts', 'src');
  const names = filesUnder(source).map((file) => file.slice(source.length + 1));
  const wanted = names.filter((name) => Object.values(TYPESCRIPT).some((area) => area.source.test(name)));
  const files = wanted.map((name) => ({
    name: join(source, name),
    content: readFileSync(join(source, name), 'utf8'),
    mutate: true,
  }));
  const options = { plugins: null, ignorers: [], excludedMutations: LEFT_OUT };
  const { files: changed, mutants } = await new Instrumenter(silent).instrument(files, options);
  for (const { name, content } of changed) writeFileSync(name, `// @ts-nocheck\n${content}`);
  const build =
    "const { bundleProgram, bundleLibrary } = await import('./scripts/bundle.mjs'); bundleProgram(); bundleLibrary();";
  // The compiler reports types that no longer fit, but still writes its output.
  spawnSync(process.execPath, [join('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'ts'], { cwd: folder });
  run(process.execPath, ['--input-type=module', '-e', build], { cwd: folder });
  return (area) =>
    mutants
      .filter(({ status }) => status !== 'Ignored')
      .map((mutant) => ({ ...mutant, name: mutant.fileName.slice(source.length + 1) }))
      .filter(({ name }) => TYPESCRIPT[area].source.test(name));
}

/** The result of `failureOf` when the tests take too long. */
const TIMED_OUT = 'a time-out';

/** Runs test files until one fails, and returns what failed or took too long; undefined if nothing did. */
function failureOf(folder, { files, mutant = '', timeoutMs }) {
  const args = ['--test', '--test-reporter=tap', '--test-concurrency=1', ...files];
  const env = { ...process.env, __STRYKER_ACTIVE_MUTANT__: mutant };
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  return new Promise((done) => {
    const end = (what) => {
      clearTimeout(timer);
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // The process has already ended by itself.
      }
      done(what);
    };
    const timer = setTimeout(() => end(TIMED_OUT), timeoutMs);
    child.stdout.setEncoding('utf8').on('data', (text) => {
      const [failed] = /^\s*not ok .*/m.exec(text) ?? [];
      if (failed !== undefined) end(failed.trim());
    });
    child.on('close', (code) => end(code === 0 ? undefined : `exit code ${code}`));
  });
}

/** Runs `work` on each of `all`, `jobs` at a time. */
async function each(all, work) {
  const left = [...all];
  const worker = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

async function typescriptArea(folder, area, mutants) {
  const tests = join(folder, 'dist', 'test');
  const files = filesUnder(tests)
    .filter((file) => file.endsWith('.js') && TYPESCRIPT[area].tests.test(file.slice(tests.length + 1)))
    .sort();
  if (files.length === 0) throw new Error(`${area}: there are no tests`);
  const startMs = performance.now();
  // As many runs at once as later: tests that disturb each other would seem to catch every mutant.
  const unchanged = Array.from({ length: jobs }, () => failureOf(folder, { files, timeoutMs: 600_000 }));
  const failed = (await Promise.all(unchanged)).find((what) => what !== undefined);
  if (failed !== undefined) throw new Error(`${area}: the tests fail without a mutant: ${failed}`);
  const timeoutMs = SLOWER * (performance.now() - startMs) + LONGER_MS;
  const sample = sampleOf(mutants);
  const left = [];
  let timedOut = 0;
  await each(sample, async ({ id, name, location: { start }, mutatorName, replacement }) => {
    const what = await failureOf(folder, { files, mutant: id, timeoutMs });
    if (what === TIMED_OUT) timedOut += 1;
    if (what !== undefined) return;
    const text = replacement.replaceAll(/\s+/g, ' ').slice(0, 100);
    left.push(`ts/src/${name}:${start.line + 1}:${start.column + 1}: ${mutatorName}: ${text}`);
    say(`not caught: ${left.at(-1)}`);
  });
  return { area, all: mutants.length, tried: sample.length, timedOut, left };
}

const CRATE = ['-p', 'svc-engine'];

const filesOf = ({ files }) => files.flatMap((file) => ['-f', `crates/engine/src/${file}`]);

/** Returns the names of all mutants that cargo-mutants can make in the files of an area. */
function rustMutants(area) {
  const args = ['mutants', '--list', '--json', ...CRATE, ...filesOf(area)];
  const { stdout, status, stderr } = spawnSync('cargo', args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`cargo mutants: ${stderr.trim().split('\n').at(-1)}`);
  return JSON.parse(stdout).map(({ name }) => name);
}

/** The exit codes of cargo-mutants after which each change was tried: all were caught, some not, some took too long. */
const TRIED = [0, 2, 3];

/** Tests the sample of an area. What no change concerns is built once, for all areas and all later runs. */
function rustArea(area) {
  const tests = ['--lib', ...RUST[area].tests.flatMap((name) => ['--test', name])];
  const all = rustMutants(RUST[area]);
  const sample = sampleOf(all);
  const out = mkdtempSync(join(tmpdir(), 'svc-mutants-rust-'));
  const list = (name) => join(out, 'mutants.out', `${name}.txt`);
  // All that is not in the sample counts as caught by an earlier run: patterns of names do not hold for deleted fields.
  mkdirSync(join(out, 'mutants.out'));
  writeFileSync(list('previously_caught'), all.filter((name) => !sample.includes(name)).join('\n'));
  const options = ['--output', out, '--iterate', '--no-shuffle', '--jobs', '1', '--timeout-multiplier', '5'];
  // Such an argument holds for the build too, which would otherwise make the tests of all areas.
  options.push('--profile', 'mutants', ...tests.map((argument) => `--cargo-arg=${argument}`));
  const args = ['mutants', ...CRATE, ...filesOf(RUST[area]), ...options];
  const env = { ...process.env, SVC_RUNTIME: resolve(ONNX_RUNTIME), CARGO_TARGET_DIR: resolve('target') };
  const { status } = spawnSync('cargo', args, { stdio: 'inherit', env });
  if (!TRIED.includes(status)) throw new Error(`${area}: cargo mutants ended with exit code ${status}`);
  const those = (name) =>
    readFileSync(list(name), 'utf8')
      .split('\n')
      .filter((one) => sample.includes(one));
  const [caught, timeouts, left, unviable] = ['caught', 'timeout', 'missed', 'unviable'].map(those);
  rmSync(out, { recursive: true, force: true });
  const tried = caught.length + timeouts.length + left.length;
  if (tried + unviable.length !== sample.length)
    throw new Error(`${area}: of ${sample.length} mutants only ${tried + unviable.length} have a result`);
  for (const one of left) say(`not caught: ${one}`);
  return { area, all: all.length, tried, timedOut: timeouts.length, left };
}

const results = [];
const folder = mkdtempSync(join(tmpdir(), 'svc-mutants-'));
try {
  const wanted = areas.filter((area) => area in TYPESCRIPT);
  if (wanted.length > 0) {
    copyOfRepository(folder);
    const mutantsOf = await instrument(folder);
    for (const area of wanted) results.push(await typescriptArea(folder, area, mutantsOf(area)));
  }
  for (const area of areas.filter((name) => name in RUST)) results.push(rustArea(area));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

process.stdout.write(
  `\nseed ${seed}\n\n| area | mutants | tried | caught | of these by time |\n|---|---|---|---|---|\n`,
);
for (const { area, all, tried, timedOut, left } of results) {
  const caught = tried - left.length;
  const percent = Math.round((100 * caught) / tried);
  process.stdout.write(`| ${area} | ${all} | ${tried} | ${caught} (${percent} %) | ${timedOut} |\n`);
}
for (const one of results.flatMap(({ left }) => left)) process.stdout.write(`- ${one}\n`);
