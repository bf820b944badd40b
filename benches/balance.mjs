/**
 * `node benches/balance.mjs`: measures how often a server behind HAProxy finds a state kept, with balancing by the
 * digest of the state, as in `deploy/haproxy/haproxy.cfg`, and by turns, for which the backend's three lines about the
 * digest are replaced. Writes its table into README.md and docs/scaling.md. Needs `haproxy`, and a machine that does
 * nothing else.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readInputs, withNewState } from './inputs.mjs';
import { percentile, underLoad } from './measure.mjs';
import { circumstances, table, writeSection } from './section.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { freePort, requestBytes, start, startServer } = await import('./server.mjs');

const SERVERS = 3;
const CONNECTIONS = 12;
const STATES = [15, 45, 90, 180];

const { values: flags } = parseArgs({ options: { seconds: { type: 'string', default: '5' } } });
const seconds = Number(flags.seconds);

const BY_STATE = /^ {2}balance hdr\(x-svc-state\)\n {2}hash-type .*\n {2}hash-balance-factor .*\n/m;
const config = readFileSync('deploy/haproxy/haproxy.cfg', 'utf8');
assert.match(config, BY_STATE);
const CONFIGS = { 'by the state': config, 'by turns': config.replace(BY_STATE, '  balance roundrobin\n') };

async function startBalancer(name, servers) {
  const file = join(folder, `${name}.cfg`);
  writeFileSync(file, CONFIGS[name]);
  const address = `127.0.0.1:${await freePort()}`;
  const at = servers.map(({ origin }, index) => [`SVC_SERVER_${index + 1}`, new URL(origin).host]);
  const own = { SVC_BALANCER: address, SVC_BALANCER_STATS: `127.0.0.1:${await freePort()}` };
  const env = { ...process.env, ...Object.fromEntries(at), ...own };
  const find = () => `http://${address}`;
  return { name, ...(await start({ name: 'HAProxy', command: ['haproxy', '-f', file], env, find, ready: '/health' })) };
}

/** Returns the hits and misses of the caches of all servers so far. */
async function lookups(servers) {
  const sums = { hits: 0, misses: 0 };
  for (const { origin } of servers) {
    const { state_cache } = await (await fetch(`${origin}/stats`)).json();
    for (const key of ['hits', 'misses']) sums[key] += state_cache[key];
  }
  return sums;
}

function requestsAbout(origin, input, count) {
  return Array.from({ length: count }, () => {
    const body = withNewState(input);
    const { state } = JSON.parse(body);
    const text = typeof state === 'string' ? state : JSON.stringify(state);
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
    return requestBytes(origin, body, '/v1/systemone', [`x-svc-state: ${digest}`]);
  });
}

async function measure(balancer, servers, { input, count }) {
  const requests = requestsAbout(balancer.origin, input, count);
  const next = () => requests[Math.floor(Math.random() * count)];
  // This warm-up shows each server the states that it will get later, with either way of balancing.
  await underLoad({ server: balancer, connections: CONNECTIONS, seconds, next });
  const before = await lookups(servers);
  const { perSecond, times } = await underLoad({ server: balancer, connections: CONNECTIONS, seconds, next });
  const after = await lookups(servers);
  const [hits, misses] = [after.hits - before.hits, after.misses - before.misses];
  return { share: hits / (hits + misses), perSecond, p50: percentile(times, 50) };
}

const folder = mkdtempSync(join(tmpdir(), 'svc-balance-'));
const env = { SVC_THREADS: '1', SVC_ALLOW_NO_PASSWORD: '1' };
const servers = await Promise.all(Array.from({ length: SERVERS }, () => startServer(env)));
try {
  const input = readInputs().find(({ stateTokens, questions }) => stateTokens === 164 && questions === 1);
  const names = Object.keys(CONFIGS);
  const balancers = [];
  for (const name of names) balancers.push(await startBalancer(name, servers));
  const measured = Object.fromEntries(names.map((name) => [name, []]));
  try {
    for (const count of STATES) {
      for (const balancer of balancers) {
        measured[balancer.name].push(await measure(balancer, servers, { input, count }));
      }
    }
  } finally {
    for (const balancer of balancers) await balancer.stop();
  }
  const cells = (name, index) => {
    const { share, perSecond, p50 } = measured[name][index];
    return [`${(100 * share).toFixed(1)} %`, perSecond.toFixed(0), p50.toFixed(1)];
  };
  const head = ['states', ...names.flatMap((name) => [`kept, ${name}`, 'requests/s', 'p50, ms'])];
  const rows = STATES.map((count, index) => [count, ...names.flatMap((name) => cells(name, index))]);
  const text = [table([head, ...rows]), circumstances()].join('\n\n');
  process.stdout.write(`${text}\n`);
  writeSection('benches/README.md', 'balance', text);
  writeSection('docs/scaling.md', 'balance', text);
} finally {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
}
