/** The measurements: latency in turns with the bare graph, then throughput. */
import autocannon from 'autocannon';

/** The longest that a block should take; on a slow machine it has fewer runs instead, but not fewer than these. */
const BLOCK_MS = 1000;
const MIN_BLOCK = 8;

/**
 * Measures an input in rounds; each runs a block on the bare graph, then a block of requests on one connection, so that
 * a machine that becomes slower or faster does so for both.
 */
export async function measureLatency({ raw, client, input, isKept, rounds, block }) {
  const prepared = await raw.prepare(input, isKept);
  const runRaw = async () => (await raw.run(prepared)).ms;
  const ask = () => client.decide(input.body);
  const warm = await repeat(MIN_BLOCK, runRaw);
  await repeat(MIN_BLOCK, ask);
  const times = Math.max(MIN_BLOCK, Math.min(block, Math.floor(BLOCK_MS / percentile(warm, 50))));
  const measured = [];
  for (let round = 0; round < rounds; round += 1) {
    const rawMs = await repeat(times, runRaw);
    const answers = await repeat(times, ask);
    measured.push({ rawMs, answers });
  }
  return summary(measured);
}

function summary(measured) {
  const rawMs = measured.flatMap((round) => round.rawMs);
  const answers = measured.flatMap((round) => round.answers);
  const of = (value) => percentile(answers.map(value), 50);
  const ms = (answer) => answer.ms;
  const ratio = ({ rawMs, answers }) => percentile(answers.map(ms), 50) / percentile(rawMs, 50);
  const rawRounds = measured.map((round) => percentile(round.rawMs, 50));
  return {
    samples: answers.length,
    ratio: spread(measured.map(ratio)),
    rawMs: { ...percentiles(rawMs), rounds: spread(rawRounds) },
    requestMs: percentiles(answers.map(ms)),
    serverMs: {
      encode: of(({ timing }) => timing.encode),
      wait: of(({ timing }) => timing.wait),
      run: of(({ timing }) => timing.run),
      total: of(({ timing }) => timing.total),
      overhead: of(({ timing }) => timing.total - timing.wait - timing.run),
    },
    /** What the request cost outside of the server's `total`: sending, the rest of the HTTP server, the client. */
    outsideMs: of(({ ms, timing }) => ms - timing.total),
  };
}

/**
 * Measures requests per second on so many connections, each of them asking again as soon as it is answered; between two
 * blocks on the bare graph, which say how many it could run a second at that time.
 */
export async function measureThroughput({ raw, origin, input, isKept, connections, seconds }) {
  const prepared = await raw.prepare(input, isKept);
  const runRaw = async () => (await raw.run(prepared)).ms;
  const before = await repeat(MIN_BLOCK, runRaw);
  const { requests, latency, duration, errors, timeouts, non2xx } = await autocannon({
    url: `${origin}/v1/systemone`,
    method: 'POST',
    body: input.body,
    headers: { 'content-type': 'application/json' },
    connections,
    duration: seconds,
  });
  if (errors + timeouts + non2xx > 0) throw new Error(`${errors} errors, ${timeouts} time-outs, ${non2xx} not 2xx`);
  const rawMs = percentile([...before, ...(await repeat(MIN_BLOCK, runRaw))], 50);
  const requestsPerSecond = requests.total / duration;
  const share = (requestsPerSecond * rawMs) / 1000;
  return { share, requestsPerSecond, rawMs, p50Ms: latency.p50, p99Ms: latency.p99 };
}

async function repeat(times, work) {
  const results = [];
  for (let time = 0; time < times; time += 1) results.push(await work());
  return results;
}

function percentiles(values) {
  return { p50: percentile(values, 50), p95: percentile(values, 95), p99: percentile(values, 99) };
}

/** The least, the middle and the greatest of a few values, one of each round. */
function spread(values) {
  return { min: Math.min(...values), median: percentile(values, 50), max: Math.max(...values) };
}

/** The nearest-rank percentile. */
function percentile(values, percent) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}
