/**
 * Counts the instructions of parse, encode and decode, and compares them with the counts that are kept for this
 * compiler: a count that is above the kept one by more than the margin is a failure. Callgrind counts, so the machine's
 * speed and load do not matter.
 *
 *     node scripts/instructions.mjs          compares
 *     node scripts/instructions.mjs --write  keeps what it counts
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const KEPT = join(ROOT, 'crates', 'engine', 'benches', 'instructions.json');
const MARGIN = 0.05;

/** Runs a command in the repository, and returns its output. */
function read(command, args, env = process.env) {
  const options = { cwd: ROOT, env, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'pipe'] };
  const { status, error, stdout, stderr } = spawnSync(command, args, options);
  if (status !== 0) throw new Error(`${command} failed: ${error?.message ?? stderr}`);
  return stdout;
}

/** Builds the bench, and returns the path of its program. */
function build() {
  const messages = read('cargo', [
    ...['build', '--release', '--locked', '-p', 'svc-engine', '--bench', 'instructions'],
    '--message-format=json-render-diagnostics',
  ]);
  const artifacts = messages.trimEnd().split('\n').map(JSON.parse);
  return artifacts.find(({ executable, target }) => executable && target.name === 'instructions').executable;
}

/**
 * Counts every stage of every input.
 * @returns the compiler and machine that the counts belong to, and the counts by name
 */
function count() {
  const program = build();
  const folder = mkdtempSync(join(tmpdir(), 'svc-instructions-'));
  try {
    const out = join(folder, 'out');
    const options = [
      `--callgrind-out-file=${out}`,
      '--zero-before=instructions::start',
      '--dump-after=instructions::counted*',
    ];
    // The program gets this environment as well: with a nearly empty one, its stack begins at the same place every
    // time.
    const env = { PATH: process.env.PATH };
    const lines = read('valgrind', ['--tool=callgrind', ...options, program], env)
      .trimEnd()
      .split('\n');
    const [machine, ...names] = lines;
    const counts = names.map((name, index) => [name, total(`${out}.${index + 1}`)]);
    return { key: `${read('rustc', ['--version']).trim()}, ${machine}`, counts: Object.fromEntries(counts) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the number of instructions in one dump. */
function total(file) {
  const found = /^summary: (\d+)$/m.exec(readFileSync(file, 'utf8'));
  if (!found) throw new Error(`callgrind has counted nothing into ${file}`);
  return Number(found[1]);
}

/** Returns a line for each stage whose count is outside the margin, and the number of stages that are above it. */
function compare(counts, kept) {
  const names = [...new Set([...Object.keys(counts), ...Object.keys(kept)])];
  const changes = names.map((name) => ({ name, now: counts[name], before: kept[name] }));
  const isHigh = ({ now, before }) => !(now <= before * (1 + MARGIN));
  const isLow = ({ now, before }) => now < before * (1 - MARGIN);
  const told = changes.filter((change) => isHigh(change) || isLow(change));
  return { failed: changes.filter(isHigh).length, lines: told.map(tell) };
}

function tell({ name, now, before }) {
  if (now === undefined) return `${name}: is kept, but was not counted`;
  if (before === undefined) return `${name}: ${now} instructions, but none are kept`;
  const percent = (100 * (now / before - 1)).toFixed(1);
  const verdict = now > before ? 'too many' : 'fewer: keep them with node scripts/instructions.mjs --write';
  return `${name}: ${now} instructions, ${before} are kept (${percent} %): ${verdict}`;
}

/** Counts and compares, prints the differences, and returns the result in the form of a test's result. */
export function instructionCounts() {
  const say = (line) => process.stdout.write(`instructions: ${line}\n`);
  try {
    const { failed, lines } = check();
    lines.forEach(say);
    return { name: 'instruction counts', exitCode: failed > 0 ? 1 : 0, passed: failed > 0 ? 0 : 1, failed };
  } catch (error) {
    say(error.message);
    return { name: 'instruction counts', exitCode: 1, passed: 0, failed: 1 };
  }
}

function check() {
  const { key, counts } = count();
  const kept = readKept()[key];
  if (!kept) return { failed: 0, lines: [unknown(key, counts)] };
  const { failed, lines } = compare(counts, kept);
  const isWell = `${Object.keys(counts).length} counts are within ${100 * MARGIN} % of those of ${key}`;
  return { failed, lines: lines.length > 0 ? lines : [isWell] };
}

function readKept() {
  return JSON.parse(readFileSync(KEPT, 'utf8'));
}

function unknown(key, counts) {
  const entry = JSON.stringify({ [key]: counts }, undefined, 2).slice(2, -2);
  return `no counts are kept for this compiler and machine; these could be, in ${KEPT.slice(ROOT.length)}:\n${entry}`;
}

function write() {
  const { key, counts } = count();
  writeFileSync(KEPT, `${JSON.stringify({ ...readKept(), [key]: counts }, undefined, 2)}\n`);
  process.stdout.write(`instructions: kept for ${key}\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv.includes('--write')) write();
  else process.exitCode = instructionCounts().exitCode;
}
