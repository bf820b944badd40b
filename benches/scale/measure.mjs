/** Measures a sweep in rounds, each over all series and sizes, so that a drift of the machine affects all of them. */
import { deepStrictEqual } from 'node:assert/strict';
import autocannon from 'autocannon';
import { Client, startServer } from '../server.mjs';

/** The time for one size in a round, and under load the least time and the answers per connection. */
const BLOCK_MS = 150;
const LOAD_SECONDS = 1;
const TURNS = 2;

/**
 * Returns the points of each series: `{size, inputTokens, rounds}`. A round has `{ms, runMs}`, or under load
 * `{ms, p99Ms, perSecond}`.
 */
export async function measureSweep(sweep, { rounds, progress }) {
  const servers = new Servers();
  try {
    const series = [];
    for (const { name, settings, body, tokens } of sweep.series) {
      const points = [];
      for (const size of sweep.sizes) {
        points.push({
          size,
          body: body(size),
          tokens: tokens?.(size),
          server: await servers.get(settings(size)),
          rounds: [],
        });
      }
      series.push({ name, points });
    }
    for (const { points } of series) for (const point of points) await warm(point);
    requireSameAnswers(series);
    for (let round = 0; round < rounds; round += 1) {
      progress(`${sweep.name}: round ${round + 1} of ${rounds}`);
      await measureRound(series, sweep.isLoad ? askAtOnce : ask, round % 2 === 1);
    }
    return series.map(withoutParts);
  } finally {
    await servers.stop();
  }
}

const withoutParts = ({ name, points }) => ({
  name,
  points: points.map(({ size, inputTokens, rounds }) => ({ size, inputTokens, rounds })),
});

/**
 * Measures one round. Every other round begins at the other end, so that a size does not always follow the same one.
 */
async function measureRound(series, measure, isBackwards) {
  for (const { points } of series) {
    for (const point of isBackwards ? points.toReversed() : points) point.rounds.push(await measure(point));
  }
}

/**
 * Asks three times and keeps the last answer. If states are kept, the third answer is made from a state that is kept
 * joined, and by then the tokenizer knows the words.
 */
async function warm(point) {
  const client = new Client(point.server.origin);
  for (let time = 0; time < 3; time += 1) point.answer = JSON.parse((await client.decide(point.body)).text);
  client.close();
  const { usage } = point.answer;
  if (usage.truncated_tokens) throw new Error(`${point.size}: ${usage.truncated_tokens} tokens are cut off`);
  point.inputTokens = usage.input_tokens;
  const wanted = point.tokens ?? point.inputTokens;
  if (point.inputTokens !== wanted) throw new Error(`${point.size}: ${point.inputTokens} tokens, not ${wanted}`);
}

/** Fails unless the same request has the same answers, whatever the server keeps and however many threads it has. */
function requireSameAnswers(series) {
  const answers = new Map();
  for (const point of series.flatMap(({ points }) => points)) {
    const before = answers.get(point.body) ?? point.answer.answers;
    deepStrictEqual(point.answer.answers, before, `${point.size}: other answers on another server`);
    answers.set(point.body, before);
  }
}

/** Asks on a connection of its own, since a server would close one that waits a minute for its next turn. */
async function ask({ server, body }) {
  const client = new Client(server.origin);
  const answers = [];
  const startMs = performance.now();
  do answers.push(await client.decide(body));
  while (performance.now() - startMs < BLOCK_MS);
  client.close();
  return { ms: median(answers.map(({ ms }) => ms)), runMs: median(answers.map(({ timing }) => timing.run)) };
}

/** Asks on `size` connections at once, until each has been answered a few times. */
async function askAtOnce({ server, body, size }) {
  const { ms } = await ask({ server, body });
  const { latency, requests, duration, errors, timeouts, non2xx } = await autocannon({
    url: `${server.origin}/v1/systemone`,
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
    connections: size,
    duration: Math.ceil(Math.max(LOAD_SECONDS, (TURNS * size * ms) / 1000)),
    timeout: 60,
  });
  if (errors + timeouts + non2xx > 0) throw new Error(`${errors} errors, ${timeouts} time-outs, ${non2xx} not 2xx`);
  const perSecond = requests.total / duration;
  // This is Little's law. The mean of the latencies would be lower, because the first requests wait for fewer others.
  return { ms: (1000 * size) / perSecond, p99Ms: latency.p99, perSecond };
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
}

/** One server for each set of settings. A server that is not asked costs nothing, because its threads sleep. */
class Servers {
  #running = new Map();

  async get(settings) {
    const key = JSON.stringify(settings);
    if (!this.#running.has(key)) this.#running.set(key, await startServer(settings));
    return this.#running.get(key);
  }

  async stop() {
    for (const { stop } of this.#running.values()) await stop();
  }
}
