/**
 * `node benches/stats-beside.mjs`: measures the cost of an open dashboard to the decisions. Throughput is measured in
 * turns, with and without requests for `/stats` ten times a second; the ratio of each pair of turns is printed, and
 * their median. Run it on a machine that does nothing else.
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { readInputs } from './inputs.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { startServer } = await import('./server.mjs');

const PASSWORD = 'the-password-of-the-bench';
const PERIOD_MS = 100;
const CONNECTIONS = 8;

const { values: flags } = parseArgs({
  options: { pairs: { type: 'string', default: '10' }, seconds: { type: 'string', default: '5' } },
});
const [pairs, seconds] = [Number(flags.pairs), Number(flags.seconds)];

/**
 * Asks for `/stats` ten times a second on one connection; returns a function that stops and returns the number of
 * answers.
 */
function askForStats(origin) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let answered = 0;
  let failure;
  const ask = async () => {
    const headers = { authorization: `Basic ${Buffer.from(`bench:${PASSWORD}`).toString('base64')}` };
    const [response] = await once(request(new URL('/stats', origin), { agent, headers }).end(), 'response');
    response.resume();
    await once(response, 'end');
    if (response.statusCode !== 200) throw new Error(`/stats: ${response.statusCode}`);
    answered += 1;
  };
  const timer = setInterval(() => {
    ask().catch((error) => {
      failure = error;
    });
  }, PERIOD_MS);
  return () => {
    clearInterval(timer);
    agent.destroy();
    // The last request may still be under way; a failure of any other makes the measurement worthless.
    if (failure !== undefined && failure.code !== 'ECONNRESET') throw failure;
    return answered;
  };
}

async function measure(origin, input, withStats) {
  const stop = withStats ? askForStats(origin) : () => 0;
  const { requests, duration, errors, timeouts, non2xx } = await autocannon({
    url: `${origin}/v1/systemone`,
    method: 'POST',
    body: input.body,
    connections: CONNECTIONS,
    duration: seconds,
  });
  const answered = stop();
  if (errors + timeouts + non2xx > 0) throw new Error(`${errors} errors, ${timeouts} time-outs, ${non2xx} not 2xx`);
  return { requestsPerSecond: requests.total / duration, stats: answered / duration };
}

/** Measures one turn with and one without; every other pair is in the opposite order, so that a drift affects both. */
async function measurePair(origin, input, index) {
  const order = index % 2 === 0 ? [false, true] : [true, false];
  const measured = new Map();
  for (const withStats of order) measured.set(withStats, await measure(origin, input, withStats));
  const [without, beside] = [measured.get(false), measured.get(true)];
  const ratio = beside.requestsPerSecond / without.requestsPerSecond;
  const rates = `${without.requestsPerSecond.toFixed(1)} alone, ${beside.requestsPerSecond.toFixed(1)} beside`;
  process.stdout.write(`${rates} ${beside.stats.toFixed(1)} of /stats a second: ${ratio.toFixed(4)}\n`);
  return ratio;
}

const server = await startServer({ SVC_PASSWORD: PASSWORD });
try {
  const input = readInputs().find(({ stateTokens, questions }) => stateTokens === 20 && questions === 1);
  // This warm-up fills the list of recent requests, and warms the processor, before anything is measured.
  await measure(server.origin, input, true);
  const ratios = [];
  for (let index = 0; index < pairs; index += 1) ratios.push(await measurePair(server.origin, input, index));
  const sorted = ratios.toSorted((a, b) => a - b);
  const median = (sorted[Math.floor((pairs - 1) / 2)] + sorted[Math.ceil((pairs - 1) / 2)]) / 2;
  const spread = `${sorted[0].toFixed(4)} to ${sorted.at(-1).toFixed(4)}`;
  process.stdout.write(`median ratio ${median.toFixed(4)} (${spread}), load ${os.loadavg()[0].toFixed(1)}\n`);
} finally {
  await server.stop();
}
