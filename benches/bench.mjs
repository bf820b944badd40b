/**
 * `npm run bench`: measures whole requests against the bare graph and the servers of others, in turns on one machine. A
 * full run writes `benches/results/latest.json` and the tables of `benches/README.md`. `--quick` is short and only
 * prints; `--only`, `--states` and `--questions` measure a part and replace that part of the results.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { picture, sentences } from './first-screen.mjs';
import { modelConfig, QUESTION_COUNTS, readInputs } from './inputs.mjs';
import { report } from './report.mjs';
import { writeSection } from './section.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { measureMix, measureState, measureSweep, openOwn } = await import('./session.mjs');
const { STATE_TOKENS } = await import('./targets.mjs');

const PARTS = ['floor', 'python', 'marker', 'mosec', 'infinity', 'load', 'mix', 'sweep'];
const STATES = [20, 164, 912, 4000];
const FULL = {
  rounds: 12,
  seconds: 4.5,
  loadTurns: 3,
  parts: PARTS,
  states: STATES,
  questions: QUESTION_COUNTS,
};
const QUICK = {
  rounds: 3,
  seconds: 1,
  loadTurns: 1,
  parts: ['floor', 'python', 'load', 'mix'],
  states: [20, STATE_TOKENS],
  questions: [1, 8],
};

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    states: { type: 'string' },
    questions: { type: 'string' },
  },
});
const isPart = [flags.only, flags.states, flags.questions].some((flag) => flag !== undefined);
const list = (text, known, type = String) => {
  const wanted = text.split(',').map(type);
  const unknown = wanted.filter((one) => !known.includes(one));
  if (unknown.length > 0) throw new Error(`${unknown.join(', ')}: there is ${known.join(', ')}`);
  return wanted;
};
const plan = flags.quick ? QUICK : FULL;
const options = {
  ...plan,
  only: new Set(flags.only === undefined ? plan.parts : list(flags.only, PARTS)),
  states: flags.states === undefined ? plan.states : list(flags.states, STATES, Number),
  questions: flags.questions === undefined ? plan.questions : list(flags.questions, QUESTION_COUNTS, Number),
  threads: Math.min(2, os.availableParallelism()),
  progress: (text) => process.stderr.write(`bench: ${text}\n`),
};

function machine() {
  const { version } = JSON.parse(readFileSync('node_modules/onnxruntime-node/package.json', 'utf8'));
  const { name, version: modelVersion } = modelConfig();
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown processor',
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.platform()} ${os.arch()}`,
    node: process.versions.node,
    onnxRuntime: version,
    model: `${name} ${modelVersion}`,
  };
}

/**
 * Measures the parts that the options name; `keep` gets the results after each state, since all of them take an hour.
 */
async function measure(keep) {
  const all = readInputs();
  const results = { series: [], load: [], memory: [] };
  const own = await openOwn(options);
  try {
    for (const stateTokens of options.states) {
      const wanted = (input) => input.stateTokens === stateTokens && options.questions.includes(input.questions);
      const { series, load } = await measureState({ ...options, own, inputs: all.filter(wanted) });
      results.series.push(...series);
      results.load.push(...load);
      keep({ ...results, memory: own.memory() });
    }
    const targeted = (questions) =>
      all.find((input) => input.stateTokens === STATE_TOKENS && input.questions === questions);
    if (options.only.has('mix')) results.mix = await measureMix({ ...options, own, input: targeted(1) });
    if (options.only.has('sweep')) {
      results.sweep = await measureSweep({ ...options, own, inputs: [1, 8].map(targeted) });
    }
    results.memory = own.memory();
    return results;
  } finally {
    await own.stop();
  }
}

/** Returns the new results, together with the earlier ones that were not measured again. */
function merged(before, now) {
  const id = ({ stateTokens, questions, key }) => [stateTokens, questions, key].join();
  const kept = (name) => {
    const known = new Set(now[name].map(id));
    return [...(before[name] ?? []).filter((one) => !known.has(id(one))), ...now[name]];
  };
  const lists = Object.fromEntries(['series', 'load', 'memory'].map((name) => [name, kept(name)]));
  return { ...before, ...now, ...lists };
}

function write(results, markdown) {
  mkdirSync('benches/results', { recursive: true });
  writeFileSync(LATEST, `${JSON.stringify(results, roundNumber, 1)}\n`);
  writeFileSync('benches/results/requests.svg', picture(results));
  writeSection('benches/README.md', 'first screen', sentences(results));
  writeSection('benches/README.md', 'results', markdown);
}

function roundNumber(_key, value) {
  return typeof value === 'number' ? Math.round(value * 1e4) / 1e4 : value;
}

// Exiting in the ordinary way makes a stopped bench end its servers.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const LATEST = 'benches/results/latest.json';
const loadBefore = os.loadavg()[0];
const described = (measured) => ({
  date: new Date().toISOString().slice(0, 10),
  options: { rounds: options.rounds, seconds: options.seconds, threads: options.threads },
  ...measured,
  machine: { ...machine(), load: { before: loadBefore, after: os.loadavg()[0] } },
});
const patched = (measured) => merged(JSON.parse(readFileSync(LATEST, 'utf8')), described(measured));
const measured = await measure((part) => {
  if (flags.quick) return;
  const results = patched(part);
  write(results, report(results));
});
const results = isPart && !flags.quick ? patched(measured) : described(measured);
const markdown = report(results);
process.stdout.write(`\n${markdown}`);
if (!flags.quick) write(results, markdown);
