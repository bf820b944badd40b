/**
 * `node benches/neighbours.mjs`: measures what a lone caller waits for when other work has the cores, or when a quota
 * holds the server back: with all threads, of which the engine uses as many as are faster, against a server with one
 * thread. Writes its table into README.md. Needs Linux and rights to make control groups (root), and a machine that
 * does nothing else.
 *
 *     node benches/neighbours.mjs [--turns 5] [--seconds 4] [--states 20,164] [--loops 3] [--quotas 0.5,1,1.5] [--dry]
 *
 * `--dry` only prints.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readInputs, withNewState } from './inputs.mjs';
import { percentile, spread, underLoad } from './measure.mjs';
import { circumstances, ratioText, table, writeSection } from './section.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { requestBytes, startServer } = await import('./server.mjs');

const PERIOD_US = 100_000;
/** The time in which the engine finds out what is faster now, before anything is counted. */
const WARM_SECONDS = 5;
/** The time after a change in which the system divides the cores anew. */
const SETTLE_MS = 1000;

const { values: flags } = parseArgs({
  options: {
    turns: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    states: { type: 'string', default: '20,164' },
    loops: { type: 'string', default: '3' },
    quotas: { type: 'string', default: '0.5,1,1.5' },
    dry: { type: 'boolean', default: false },
  },
});
const [turns, seconds, loops] = [flags.turns, flags.seconds, flags.loops].map(Number);
const [states, quotas] = [flags.states, flags.quotas].map((list) => list.split(',').map(Number));
const cores = os.availableParallelism();
const progress = (text) => process.stderr.write(`neighbours: ${text}\n`);

/** Starts `count` processes that compute without end, and returns a function that ends them. */
function busyLoops(count) {
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', 'for(;;);'], { stdio: 'ignore' }),
  );
  const kill = () => children.forEach((child) => void child.kill('SIGKILL'));
  process.once('exit', kill);
  return () => {
    process.off('exit', kill);
    kill();
  };
}

/**
 * Limits a process to `quota` cores by a control group of its own, and returns a function that takes the limit away.
 * Knows both versions of control groups.
 */
function limit(pid, quota) {
  const [root] = ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup'].filter((folder) => existsSync(folder));
  const group = join(root, `svc-bench-${pid}`);
  mkdirSync(group, { recursive: true });
  const quotaUs = Math.round(quota * PERIOD_US);
  if (existsSync(join(group, 'cpu.max'))) {
    writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${PERIOD_US}`);
  } else {
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quotaUs));
  }
  writeFileSync(join(group, 'cgroup.procs'), String(pid));
  return () => {
    writeFileSync(join(root, 'cgroup.procs'), String(pid));
    rmdirSync(group);
  };
}

const none = () => () => {};
/** The situations, `[label, begin]`: `begin` holds a process up and returns a function that ends that. */
const SITUATIONS = [
  ['nothing', none],
  [`${loops} busy loops`, () => busyLoops(loops)],
  ...quotas.map((quota) => [`a quota of ${quota}`, (pid) => limit(pid, quota)]),
];

/** Asks as a lone caller, and returns the mean and the median of the times, in milliseconds. */
async function ask(server, input, forSeconds) {
  const next = () => requestBytes(server.origin, withNewState(input));
  const { times } = await underLoad({ server, connections: 1, seconds: forSeconds, next });
  return { mean: times.reduce((sum, ms) => sum + ms, 0) / times.length, median: percentile(times, 50) };
}

/** Returns the times of all turns by the servers' order. */
async function measure(input, servers, begin) {
  const all = servers.map(() => []);
  for (let turn = -1; turn < turns; turn += 1) {
    for (const at of turn % 2 === 0 ? servers.keys() : [...servers.keys()].toReversed()) {
      const end = begin(servers[at].pid);
      try {
        await sleep(SETTLE_MS);
        const times = await ask(servers[at], input, turn < 0 ? WARM_SECONDS : seconds);
        if (turn >= 0) all[at].push(times);
      } finally {
        end();
      }
    }
  }
  return all;
}

/** Returns the median of the turns, and the median of their ratios to `reference` with the least and the greatest. */
function cells(own, reference, key) {
  const ratio = ratioText(spread(own.map((one, turn) => one[key] / reference[turn][key])));
  return [spread(own.map((one) => one[key])).median.toFixed(2), ratio];
}

const servers = [];
try {
  for (const threads of [1, cores]) servers.push(await startServer({ SVC_THREADS: String(threads) }));
  const inputs = readInputs().filter((input) => states.includes(input.stateTokens) && input.questions === 1);
  const lines = [];
  for (const input of inputs) {
    for (const [label, begin] of SITUATIONS) {
      progress(`${input.name}, ${label}`);
      const [one, all] = await measure(input, servers, begin);
      const ofOne = ['mean', 'median'].map((key) => spread(one.map((times) => times[key])).median.toFixed(2));
      const both = ['mean', 'median'].map((key) => cells(all, one, key));
      lines.push([input.stateTokens, label, ofOne[0], ...both[0], ofOne[1], ...both[1]]);
    }
  }
  const head = ['tokens', 'what holds it up', '1 thread, mean, ms', `${cores} threads`, 'ratio'];
  head.push('1 thread, p50, ms', `${cores} threads`, 'ratio');
  const note =
    `New states, one question, one caller; medians of ${turns} turns of ${seconds} s, least and greatest ratio. A quota ` +
    `counts in cores, over periods of ${PERIOD_US / 1000} ms, and holds for the server but not for its caller.`;
  const text = [table([head, ...lines]), note, circumstances()].join('\n\n');
  process.stdout.write(`${text}\n`);
  if (!flags.dry) writeSection('benches/README.md', 'neighbours', text);
} finally {
  await Promise.all(servers.map((server) => server.stop()));
}
