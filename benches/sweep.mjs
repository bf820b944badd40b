/** Measures the bare graph with other settings of its sessions, in turns with the engine's own run. */
import { existsSync } from 'node:fs';
import process from 'node:process';
import { Bare, engineSetting } from './bare.mjs';
import { compared, inTurns, percentiles, Running } from './measure.mjs';

/** Allocators that are tried if they are installed. */
const ALLOCATORS = ['mimalloc.so.2', 'jemalloc.so.2', 'tcmalloc_minimal.so.4'].map(
  (name) => `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/lib${name}`,
);

/** Settings of glibc's allocator: it keeps all freed memory for itself, or no blocks above 128 KiB. */
const GLIBC = {
  'blocks kept': { MALLOC_MMAP_THRESHOLD_: String(2 ** 30), MALLOC_TRIM_THRESHOLD_: String(2 ** 31) },
  'blocks given back': { MALLOC_MMAP_THRESHOLD_: String(128 * 1024), MALLOC_TRIM_THRESHOLD_: String(128 * 1024) },
};

function settings(threads) {
  const base = engineSetting(threads);
  const entry = (key, value) => ({ ...base, entries: { ...base.entries, [key]: value } });
  return {
    "the engine's": base,
    '1 thread': { ...base, threads: 1 },
    'threads spin for as long as they come with': { threads, entries: { 'session.force_spinning_stop': '1' } },
    'threads never spin': entry('session.intra_op.allow_spinning', '0'),
    'threads spin between runs, too': { threads },
    'no arena': { ...base, arena: false },
    'memory pattern': { ...base, memory_pattern: true },
    'basic optimisations': { ...base, level: 'ENABLE_BASIC' },
    'extended optimisations': { ...base, level: 'ENABLE_EXTENDED' },
    'no optimisations': { ...base, level: 'DISABLE_ALL' },
    'no prepacking': entry('session.disable_prepacking', '1'),
    'denormals as zero': entry('session.set_denormal_as_zero', '1'),
  };
}

/**
 * Measures the sweep of some inputs.
 *
 * @param asking returns the engine's series of an input, whose `run` is compared
 * @returns for each input `{questions, engine, ways}`, with the times of each way and its ratio to the engine's run
 */
export async function sweep({ python, inputs, threads, rounds, asking, progress }) {
  const processes = { '': new Bare(python) };
  for (const [name, environment] of Object.entries(GLIBC)) processes[`, ${name}`] = new Bare(python, environment);
  for (const file of ALLOCATORS.filter((file) => existsSync(file))) {
    processes[`, ${/lib(\w+?)\.so/.exec(file)[1]}`] = new Bare(python, { LD_PRELOAD: file });
  }
  try {
    const results = [];
    for (const input of inputs) {
      for (const bare of Object.values(processes)) await bare.load(input);
      results.push(await sweepInput({ input, processes, threads, rounds, asking, progress }));
    }
    return results;
  } finally {
    for (const bare of Object.values(processes)) await bare.close();
  }
}

async function sweepInput({ input, processes, threads, rounds, asking, progress }) {
  const engine = asking(input);
  const running = (key, bare, setting, way) => new Running({ key, bare, input, isKept: false, setting, way });
  const all = [engine];
  for (const [key, setting] of Object.entries(settings(threads)))
    all.push(running(key, processes[''], setting, 'plain'));
  for (const [name, bare] of Object.entries(processes)) {
    const setting = engineSetting(threads);
    if (name !== '') all.push(running(`the engine's${name}`, bare, setting, 'plain'));
    if (input.questions > 1) all.push(running(`side by side${name}`, bare, setting, 'side'));
  }
  progress(`sweep: ${input.name}, ${all.length - 1} ways`);
  const [own, ...ways] = await inTurns(all, rounds, () => {});
  engine.close();
  const run = ({ ms, timing }) => timing?.run ?? ms;
  return {
    stateTokens: input.stateTokens,
    questions: input.questions,
    engineMs: percentiles(own.rounds.flat().map(run)),
    ways: ways.map((way) => ({
      key: way.series.key,
      ms: percentiles(way.rounds.flat().map(run)),
      engineRatio: compared(own, way, undefined, run),
    })),
  };
}
