/**
 * `node benches/cores.mjs`: measures how many requests about new states a server answers with more of them on the model
 * at once (`parallel`), against as many processes with one thread each behind HAProxy, and against the bare graph on as
 * many threads that share nothing. Writes its table into README.md and docs/scaling.md. Needs `haproxy`, Python 3.9 or
 * newer, and a machine that does nothing else.
 *
 *     node benches/cores.mjs [--turns 5] [--seconds 3] [--connections 8] [--states 20,164,912] [--dry]
 *
 * `--dry` only prints.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readInputs, withNewState } from './inputs.mjs';
import { percentile, spread, underLoad } from './measure.mjs';
import { circumstances, ratioText, table, writeSection } from './section.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { Bare, engineSetting } = await import('./bare.mjs');
const { pythonOf } = await import('./peers.mjs');
const { freePort, requestBytes, residentBytes, start, startServer } = await import('./server.mjs');

const QUESTIONS = [1, 8];
/** The numbers of requests on the model at once, as far as there are cores for them. */
const LANES = [1, 2, 4, 8, 16];
/** The time for which each process of the bare graph runs in a turn. */
const BARE_MS = 1500;

const { values: flags } = parseArgs({
  options: {
    turns: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '8' },
    states: { type: 'string', default: '20,164,912' },
    dry: { type: 'boolean', default: false },
  },
});
const [turns, seconds, connections] = [flags.turns, flags.seconds, flags.connections].map(Number);
const states = flags.states.split(',').map(Number);
const cores = os.availableParallelism();
const lanes = LANES.filter((count) => count <= cores);
const progress = (text) => process.stderr.write(`cores: ${text}\n`);

/** Starts HAProxy in front of servers; a request goes to the one with the fewest requests. */
async function startBalancer(folder, servers) {
  const address = `127.0.0.1:${await freePort()}`;
  const file = join(folder, 'haproxy.cfg');
  const backends = servers.map(({ origin }, index) => `  server s${index} ${new URL(origin).host}`);
  const times = ['connect', 'client', 'server'].map((name) => `  timeout ${name} 30s`);
  const proxy = ['listen svc', `  bind ${address}`, '  mode http', '  balance leastconn', ...times, ...backends];
  writeFileSync(file, `${proxy.join('\n')}\n`);
  const find = () => `http://${address}`;
  return start({ name: 'HAProxy', command: ['haproxy', '-f', file], env: process.env, find, ready: '/health' });
}

/** Everything that is asked: `{key, label, server}`, and what has to be stopped in the end. */
async function startAll(folder) {
  const asked = [];
  const running = [];
  const keep = (server) => {
    running.unshift(server);
    return server;
  };
  try {
    for (const count of lanes) {
      const settings = { SVC_THREADS: String(cores), SVC_PARALLEL: String(count) };
      asked.push({ key: `parallel ${count}`, server: keep(await startServer(settings)) });
    }
    const single = [];
    for (let index = 0; index < cores; index += 1) single.push(keep(await startServer({ SVC_THREADS: '1' })));
    const balancer = keep(await startBalancer(folder, single));
    asked.push({ key: `${cores} processes`, server: balancer, pids: single.map(({ pid }) => pid) });
    return { asked, stop: () => Promise.all(running.map((server) => server.stop())) };
  } catch (error) {
    await Promise.all(running.map((server) => server.stop()));
    throw error;
  }
}

/** Returns the runs per second of all processes of the bare graph together, each on one thread. */
async function bareRate(bares, name) {
  const order = { name, kept: false, setting: engineSetting(1) };
  const [first] = await bares[0].time({ ...order, times: 1 });
  const times = Math.max(3, Math.round(BARE_MS / first));
  const all = await Promise.all(bares.map((bare) => bare.time({ ...order, times })));
  return all.reduce((rate, ms) => rate + (1000 * ms.length) / ms.reduce((sum, one) => sum + one, 0), 0);
}

/** Returns an empty list for each of those that are asked. */
function lists(asked) {
  return new Map(asked.map(({ key }) => [key, []]));
}

async function measureTurn(rows, asked, bares, isReversed) {
  for (const { input, rates, lone, bare } of isReversed ? rows.toReversed() : rows) {
    for (const { key, server } of isReversed ? asked.toReversed() : asked) {
      const next = () => requestBytes(server.origin, withNewState(input));
      const loaded = await underLoad({ server, connections, seconds, next });
      rates.get(key).push(loaded.perSecond);
      const { times } = await underLoad({ server, connections: 1, seconds: seconds / 2, next });
      lone.get(key).push(percentile(times, 50));
    }
    bare.push(await bareRate(bares, input.name));
  }
}

/** Returns the median of the turns' ratios, with the least and the greatest. */
function ratio(values, reference) {
  return ratioText(spread(values.map((value, turn) => value / reference[turn])));
}

function tableOf(rows, asked) {
  const [{ key: one }, ...others] = asked;
  const names = others.map(({ key }) => key);
  const head = [
    'tokens',
    'questions',
    `${one}, requests/s`,
    ...names,
    'bare graph',
    ...names.slice(0, -1).map((key) => `lone p50, ${key}`),
  ];
  const lines = rows.map(({ input, rates, lone, bare }) => [
    input.stateTokens,
    input.questions,
    spread(rates.get(one)).median.toFixed(1),
    ...names.map((key) => ratio(rates.get(key), rates.get(one))),
    ratio(bare, rates.get(one)),
    ...names.slice(0, -1).map((key) => ratio(lone.get(key), lone.get(one))),
  ]);
  return table([head, ...lines]);
}

function memoryOf(asked) {
  const mebibytes = ({ server, pids = [server.pid] }) => {
    return Math.round(pids.reduce((sum, pid) => sum + residentBytes(pid), 0) / 2 ** 20);
  };
  return asked.map((one) => `${one.key} ${mebibytes(one)} MiB`).join(', ');
}

const folder = mkdtempSync(join(os.tmpdir(), 'svc-cores-'));
const python = pythonOf('python', progress);
const { asked, stop } = await startAll(folder);
const bares = Array.from({ length: cores }, () => new Bare(python));
try {
  const wanted = ({ stateTokens, questions }) => states.includes(stateTokens) && QUESTIONS.includes(questions);
  const rows = readInputs()
    .filter(wanted)
    .map((input) => ({ input, rates: lists(asked), lone: lists(asked), bare: [] }));
  for (const { input } of rows) await Promise.all(bares.map((bare) => bare.load(input)));
  for (let turn = 0; turn < turns; turn += 1) {
    progress(`turn ${turn + 1} of ${turns}`);
    await measureTurn(rows, asked, bares, turn % 2 === 1);
  }
  const note =
    `Requests/s with ${connections} connections as ratios to \`parallel\` 1, and the p50 of a lone caller likewise; medians of ` +
    `${turns} turns, least and greatest. Resident at the end: ${memoryOf(asked)}.`;
  const text = [tableOf(rows, asked), note, circumstances()].join('\n\n');
  process.stdout.write(`${text}\n`);
  if (!flags.dry) {
    writeSection('benches/README.md', 'cores', text);
    writeSection('docs/scaling.md', 'cores', text);
  }
} finally {
  await Promise.all(bares.map((bare) => bare.close()));
  await stop();
  rmSync(folder, { recursive: true, force: true });
}
