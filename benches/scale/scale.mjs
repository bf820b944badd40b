/**
 * `npm run bench:scale`: measures how the time of a request grows with its parts. It writes a picture for each sweep,
 * the numbers, and the tables of `README.md`, and fails if a time grows faster than it may.
 *
 *     npm run bench:scale -- --only questions,state   measures these sweeps and leaves the others as they are
 *     npm run bench:scale -- --rounds 3               is shorter; 8 is the default
 *     npm run bench:scale -- --rounds 0               measures nothing; draws and writes the existing results
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { draw } from './plot.mjs';
import { fits, section, spread, tooSteep } from './report.mjs';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
const { measureSweep } = await import('./measure.mjs');
const { SWEEPS } = await import('./sweeps.mjs');

const FOLDER = join('benches', 'scale');
const PAGE = join(FOLDER, 'README.md');
const RESULTS = join('benches', 'results', 'scale.json');

function machine() {
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown processor',
    cores: os.availableParallelism(),
    node: process.versions.node,
    load: Number(os.loadavg()[0].toFixed(2)),
  };
}

async function measure(sweep, rounds) {
  const about = { date: new Date().toISOString().slice(0, 10), rounds, machine: machine() };
  return { ...about, series: await measureSweep(sweep, { rounds, progress }) };
}

/** Draws and prints a sweep, and returns the number of its series that are too steep. */
function tell(sweep, result) {
  const series = result.series.map(({ name, points }) => ({ name, points: points.map(spread) }));
  writeFileSync(join(FOLDER, `${sweep.name}.svg`), draw({ ...sweep, series }));
  process.stdout.write(`\n${section(sweep, result)}`);
  const steep = tooSteep(sweep, fits(sweep, result.series));
  for (const { name, tail } of steep) {
    process.stdout.write(`TOO STEEP: ${sweep.name}, ${name}: at least ${tail.low.toFixed(3)}, not ${sweep.bound}\n`);
  }
  return steep.length;
}

function writePage(results) {
  const sections = SWEEPS.filter(({ name }) => results[name]).map((sweep) => section(sweep, results[sweep.name]));
  const between = /(?<=<!-- results -->\n).*(?=<!-- end of results -->)/s;
  const page = readFileSync(PAGE, 'utf8');
  if (!between.test(page)) throw new Error(`${PAGE} has lost its markers`);
  const text = page.replace(between, () => `\n${sections.join('\n')}\n`);
  writeFileSync(PAGE, text);
}

function roundNumber(_key, value) {
  return typeof value === 'number' ? Math.round(value * 1e3) / 1e3 : value;
}

function progress(text) {
  process.stderr.write(`scale: ${text}\n`);
}

// Exiting in the ordinary way makes a stopped bench end its servers.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const { values: flags } = parseArgs({
  options: { only: { type: 'string' }, rounds: { type: 'string', default: '8' } },
});
const rounds = Number(flags.rounds);
const names = flags.only?.split(',') ?? SWEEPS.map(({ name }) => name);
const results = existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')) : {};
let steep = 0;
for (const sweep of SWEEPS.filter(({ name }) => names.includes(name))) {
  if (rounds > 0) results[sweep.name] = await measure(sweep, rounds);
  // The results are written first, so that they are kept even if drawing fails.
  writeFileSync(RESULTS, `${JSON.stringify(results, roundNumber)}\n`);
  if (results[sweep.name]) steep += tell(sweep, results[sweep.name]);
}
writePage(results);
process.exitCode = steep > 0 ? 1 : 0;
