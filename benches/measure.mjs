/**
 * The measurements: times on one connection, with all series in turns; then requests per second on many connections.
 */
import { withNewState } from './inputs.mjs';
import { Client, requestBytes } from './server.mjs';

/** The time that one block should take; a block of a slow series has fewer runs. */
const BLOCK_MS = 200;
const MIN_BLOCK = 3;
/** The most time of a series in all rounds, and the time of a run beyond which its blocks are single runs. */
const SERIES_MS = 6_000;
const SINGLE_MS = 1_000;
/**
 * The number of requests that are made before many connections send them in rotation: far more than the kept states.
 */
const READY = 1024;

/** A series of requests to a server: `{key, server, input, isKept, estimateMs}`. */
export class Asking {
  constructor({ key, server, input, isKept }) {
    Object.assign(this, { key, server, input, isKept, client: new Client(server.origin) });
  }

  /** Sends `times` requests one after another; their bytes are made before the clock runs. */
  async block(times) {
    const requests = Array.from({ length: times }, () => this.bytes());
    const answers = [];
    for (const request of requests) answers.push(await this.client.send(request));
    for (const { text } of answers) this.requireAllTokens(text);
    return answers;
  }

  bytes() {
    const body = this.isKept ? this.input.body : withNewState(this.input);
    const { origin, path, body: other = (text) => text } = this.server;
    return requestBytes(origin, other(body), path);
  }

  /**
   * Fails unless an answer counts as many tokens as the first: a new state has its words in other places, but as many
   * tokens.
   */
  requireAllTokens(text) {
    const tokens = /"(?:input|prompt)_tokens":(\d+)/.exec(text)?.[1];
    this.tokens ??= tokens;
    if (tokens !== this.tokens) throw new Error(`${this.key}: ${tokens} tokens instead of ${this.tokens}`);
  }

  close() {
    this.client.close();
  }
}

/** A series of runs of the bare graph. */
export class Running {
  constructor({ key, bare, input, isKept, setting, way }) {
    Object.assign(this, { key, bare, input, isKept, setting, way });
  }

  async block(times) {
    const { name } = this.input;
    const ms = await this.bare.time({ name, kept: this.isKept, setting: this.setting, way: this.way, times });
    return ms.map((value) => ({ ms: value }));
  }

  close() {}
}

/**
 * Measures series in rounds. Each round runs a block of every series, and every other round runs them in the opposite
 * order, so that a machine that becomes slower or faster does so for all.
 *
 * @returns for each series `{series, rounds: [answers]}`; a slow series has fewer rounds
 */
export async function inTurns(all, rounds, progress) {
  const measured = [];
  for (const series of all) {
    series.estimateMs ??= percentile(
      (await series.block(2)).map(({ ms }) => ms),
      1,
    );
    const { estimateMs } = series;
    const least = estimateMs > SINGLE_MS ? 1 : MIN_BLOCK;
    const times = Math.max(least, Math.min(40, Math.floor(BLOCK_MS / estimateMs)));
    const most = Math.max(1, Math.min(rounds, Math.floor(SERIES_MS / (times * estimateMs))));
    measured.push({ series, times, most, rounds: [] });
  }
  for (let round = 0; round < rounds; round += 1) {
    progress(`round ${round + 1} of ${rounds}`);
    for (const one of round % 2 === 0 ? measured : measured.toReversed()) {
      if (round >= one.most) continue;
      // The first run of a block does not count: it finds the processor's caches full of the previous block's data.
      const lead = one.times > 1 ? 1 : 0;
      one.rounds.push((await one.series.block(lead + one.times)).slice(lead));
    }
  }
  return measured;
}

/** Returns percentiles, requests per second on this connection, and the parts of the time that the server reports. */
export function summary({ rounds }) {
  const answers = rounds.flat();
  const times = answers.map(({ ms }) => ms);
  const timed = answers.filter(({ timing }) => timing?.run !== undefined);
  const of = (value) => percentile(timed.map(value), 50);
  return {
    samples: times.length,
    ms: percentiles(times),
    perSecond: (1000 * times.length) / times.reduce((sum, ms) => sum + ms, 0),
    ...(timed.length > 0 && {
      serverMs: {
        encode: of(({ timing }) => timing.encode),
        wait: of(({ timing }) => timing.wait),
        run: of(({ timing }) => timing.run),
        total: of(({ timing }) => timing.total),
        beside: of(({ timing }) => timing.total - timing.wait - timing.run),
        outside: of(({ ms, timing }) => ms - timing.total),
      },
    }),
  };
}

/**
 * Returns the median, the least and the greatest of the rounds' ratios (or what `compare` makes) of two series'
 * medians.
 */
export function compared(one, other, compare = (a, b) => a / b, value = ({ ms }) => ms) {
  const median = (answers) => percentile(answers.map(value), 50);
  const rounds = Math.min(one.rounds.length, other.rounds.length);
  const values = Array.from({ length: rounds }, (_, at) => {
    return compare(
      median(one.rounds[at]),
      percentile(
        other.rounds[at].map(({ ms }) => ms),
        50,
      ),
    );
  });
  return spread(values);
}

/**
 * Asks on `connections` connections for `seconds`, on each again as soon as it is answered; the first answer of each
 * does not count.
 *
 * @param next returns the bytes of another request; it is called before the clock runs
 */
export async function underLoad({ server, connections, seconds, next }) {
  const clients = Array.from({ length: connections }, () => new Client(server.origin));
  const ready = Array.from({ length: READY }, next);
  const counted = [];
  let sent = 0;
  let from;
  let warm = 0;
  const untilMs = () => (from ?? Number.POSITIVE_INFINITY) + seconds * 1000;
  const ask = async (client) => {
    for (let time = 0; performance.now() < untilMs(); time += 1) {
      const answer = await client.send(ready[sent++ % READY]);
      const endMs = answer.startMs + answer.ms;
      if (time > 0) counted.push({ ms: answer.ms, endMs, run: answer.timing.run });
      else if (++warm === connections) from = performance.now();
    }
  };
  try {
    await Promise.all(clients.map(ask));
  } finally {
    for (const client of clients) client.close();
  }
  const inTime = counted.filter(({ endMs }) => endMs > from).toSorted((a, b) => a.endMs - b.endMs);
  return {
    times: inTime.map(({ ms }) => ms),
    runs: inTime.map(({ run }) => run),
    perSecond: (1000 * inTime.length) / (inTime.at(-1).endMs - from),
    connections,
  };
}

/** Returns the figures of turns of `underLoad`, and the ratios of `reference`'s rates to theirs, if it is given. */
export function loadSummary(turns, reference) {
  const times = turns.flatMap((turn) => turn.times);
  const ideal = turns.flatMap(({ runs, connections }) => (runs[0] === undefined ? [] : idealQueue(runs, connections)));
  return {
    samples: times.length,
    perSecond: spread(turns.map(({ perSecond }) => perSecond)).median,
    ms: percentiles(times),
    ...(ideal.length > 0 && { idealMs: percentiles(ideal) }),
    ...(reference && { ofNew: spread(turns.map(({ perSecond }, turn) => reference[turn].perSecond / perSecond)) }),
  };
}

/**
 * Returns the times of requests in an ideal queue: first come, first served, one at a time. Each request takes as long
 * as the measured one took on the model, and no other time; every connection asks again at once.
 */
function idealQueue(runs, connections) {
  const asked = new Array(connections).fill(0);
  let nowMs = 0;
  const times = runs.map((run, index) => {
    nowMs += run;
    const ms = nowMs - asked[index % connections];
    asked[index % connections] = nowMs;
    return ms;
  });
  // The first requests met an empty queue, so they do not count.
  return times.length > 2 * connections ? times.slice(connections) : times;
}

export function percentiles(values) {
  return { p50: percentile(values, 50), p95: percentile(values, 95), p99: percentile(values, 99) };
}

/** Returns the least, the middle and the greatest of a few values, one of each round. */
export function spread(values) {
  return { min: Math.min(...values), median: percentile(values, 50), max: Math.max(...values) };
}

/** Returns the nearest-rank percentile of the values. */
export function percentile(values, percent) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}
