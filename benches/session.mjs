/** One run of the bench: our servers and those of others, the checks before anything is timed, and the measurements. */
import { Bare, engineSetting } from './bare.mjs';
import { requireSameAnswers } from './check.mjs';
import { modelConfig, readInputs, withNewState } from './inputs.mjs';
import { Asking, compared, inTurns, loadSummary, Running, spread, summary, underLoad } from './measure.mjs';
import { peers, pythonOf, requireClose } from './peers.mjs';
import { Client, requestBytes, residentBytes, startServer } from './server.mjs';
import { sweep } from './sweep.mjs';
import { STATE_TOKENS } from './targets.mjs';

const CONNECTIONS = 32;
const WARM_MS = 2000;
/** The length of the warm-up under load: a server becomes faster still over a few thousand requests. */
const WARM_LOAD_SECONDS = 15;
const SLOW_MS = 5000;
/** The longest request of a peer that is also measured under load: each turn has to wait twice for 32 slower ones. */
const LOAD_MS = { atTargets: 400, elsewhere: 100 };
/** The memory for kept states: enough that even the longest one stays kept. */
const KEPT_BYTES = 256 * 2 ** 20;
/** The keys of our own server's series; those that end in 2 have two requests on the model at once. */
const OWN_KEYS = new Set(['new', 'kept', 'new2', 'kept2']);
/**
 * The number of states that are asked about again and again in the mix, in which half of the states were seen before.
 */
const SEEN_STATES = 8;
/** The tokens of a state from which on a check has only one question: a peer takes minutes for sixteen. */
const LONG_STATE = 2000;

/**
 * Starts our servers, of which `fresh` has the default settings, and those of the peers.
 */
export async function openOwn({ threads, only, progress }) {
  const own = new Own();
  const settings = { SVC_THREADS: String(threads) };
  try {
    await own.add('fresh', 'ours', () => startServer(settings));
    await own.add('kept', 'ours, 256 MiB of kept states', () =>
      startServer({ ...settings, SVC_STATE_CACHE_BYTES: String(KEPT_BYTES) }),
    );
    if (threads > 1) {
      await own.add('two', 'ours, `parallel` 2, 256 MiB', () =>
        startServer({ ...settings, SVC_PARALLEL: '2', SVC_STATE_CACHE_BYTES: String(KEPT_BYTES) }),
      );
    }
    own.python = pythonOf('python', progress);
    own.bare = new Bare(own.python);
    own.peers = peers({ only, threads, progress });
    for (const peer of own.peers) {
      progress(`starting ${peer.label}`);
      peer.server = await own.add(peer.key, peer.label, peer.start);
    }
    return own;
  } catch (error) {
    await own.stop();
    throw error;
  }
}

/** The running servers, and the process of the bare graph. */
class Own {
  servers = {};
  peers = [];

  async add(key, label, startIt) {
    const server = await startIt();
    this.servers[key] = { ...server, label, startBytes: residentBytes(server.pid) };
    await warmUp(server);
    return this.servers[key];
  }

  /** Returns the resident memory of each server just after its start, and now. */
  memory() {
    return Object.entries(this.servers).map(([key, { label, pid, startBytes }]) => {
      return { key, label, startBytes, endBytes: residentBytes(pid) };
    });
  }

  async stop() {
    await this.bare?.close();
    for (const server of Object.values(this.servers)) await server.stop();
  }
}

/** Warms up a server, because one that has just started is slower: its code has not been compiled yet. */
async function warmUp({ origin, path, body = (text) => text }) {
  const client = new Client(origin);
  const [input] = readInputs();
  const startMs = performance.now();
  while (performance.now() - startMs < WARM_MS) {
    await client.send(requestBytes(origin, body(withNewState(input)), path));
  }
  client.close();
}

/** Measures all numbers of questions on one state: first times in turns, then many connections. */
export async function measureState({ own, inputs, only, rounds, seconds, loadTurns, threads, progress }) {
  const { stateTokens } = inputs[0];
  progress(`state of ${stateTokens} tokens`);
  await requireCorrect(own, inputs, progress);
  const answering = own.peers.filter(({ mostTokens = Number.POSITIVE_INFINITY }) => stateTokens <= mostTokens);
  const all = inputs.flatMap((input) => seriesOf({ own, input, answering, threads, withFloor: only.has('floor') }));
  const measured = await inTurns(all, rounds, progress);
  const series = measured.map((one) => described(one, measured));
  const load = only.has('load') ? await measureLoad({ all, seconds, loadTurns, progress }) : [];
  for (const one of all) one.close();
  return { series, load };
}

function seriesOf({ own, input, answering, threads, withFloor }) {
  const { fresh, kept, two } = own.servers;
  const setting = engineSetting(threads);
  const bare = [
    { key: 'floor', isKept: false, way: 'plain' },
    { key: 'floor-kept', isKept: true, way: 'plain' },
    { key: 'side', isKept: false, way: 'side' },
    { key: 'side-kept', isKept: true, way: 'side' },
  ];
  const running = withFloor ? bare.map((one) => new Running({ ...one, bare: own.bare, input, setting })) : [];
  return [
    // Series that are compared with each other come directly after each other: a slow second of the machine then meets
    // both.
    new Asking({ key: 'new', server: fresh, input, isKept: false }),
    ...running.filter(({ isKept }) => !isKept),
    new Asking({ key: 'kept', server: kept, input, isKept: true }),
    ...running.filter(({ isKept }) => isKept),
    ...(two === undefined ? [] : [false, true]).map(
      (isKept) => new Asking({ key: isKept ? 'kept2' : 'new2', server: two, input, isKept }),
    ),
    ...answering.map(({ key, server, oneQuestionMs }) => {
      const series = new Asking({ key, server, input, isKept: false });
      // The estimate is known, so a slow peer is not run just to find out that it is slow.
      return Object.assign(series, { estimateMs: oneQuestionMs * input.questions });
    }),
  ];
}

/** Returns the figures of a series, and its ratios to other series of the same rounds. */
function described(one, measured) {
  const { key, input } = one.series;
  const other = (wanted, questions = input.questions) =>
    measured.find(({ series }) => series.key === wanted && series.input.questions === questions);
  const to = (wanted, questions, compare) => {
    const found = other(wanted, questions);
    return found === undefined || found === one ? undefined : compared(one, found, compare);
  };
  const kept = key.startsWith('kept') ? '-kept' : '';
  return {
    stateTokens: input.stateTokens,
    questions: input.questions,
    key,
    ...summary(one),
    ...(OWN_KEYS.has(key) && {
      toFloor: to(`floor${kept}`),
      overFloorMs: to(`floor${kept}`, input.questions, (a, b) => a - b),
      toSide: to(`side${kept}`),
      toOneQuestion: to(key, 1),
    }),
    toNew: to('new'),
  };
}

async function measureLoad({ all, seconds, loadTurns, progress }) {
  const results = [];
  for (const input of new Set(all.map((series) => series.input))) {
    const asked = all.filter((one) => one.input === input && one instanceof Asking && isAskedByMany(one));
    progress(`${CONNECTIONS} connections: ${input.name}, ${asked.map(({ key }) => key).join(', ')}`);
    const turns = new Map(asked.map((series) => [series, []]));
    for (let turn = 0; turn < loadTurns; turn += 1) {
      for (const series of turn % 2 === 0 ? asked : asked.toReversed()) {
        const next = () => series.bytes();
        const { server } = series;
        turns
          .get(series)
          .push(await underLoad({ server, connections: CONNECTIONS, seconds: seconds / loadTurns, next }));
      }
    }
    const reference = turns.get(asked.find(({ key }) => key === 'new'));
    for (const [{ key }, measured] of turns) {
      const { stateTokens, questions } = input;
      results.push({ stateTokens, questions, key, ...loadSummary(measured, reference) });
    }
  }
  return results;
}

function isAskedByMany({ key, input, estimateMs }) {
  if (OWN_KEYS.has(key)) return true;
  return estimateMs <= (input.stateTokens === STATE_TOKENS ? LOAD_MS.atTargets : LOAD_MS.elsewhere);
}

/** Measures requests per second with the cache and without it, in turns, if half of the states were seen before. */
export async function measureMix({ own, input, rounds, seconds, threads, progress }) {
  const without = await own.add('uncached', 'ours, nothing kept', () =>
    startServer({ SVC_THREADS: String(threads), SVC_STATE_CACHE_BYTES: '0' }),
  );
  const seen = Array.from({ length: SEEN_STATES }, () => withNewState(input));
  const rate = async (server, forSeconds) => {
    let asked = 0;
    const next = () => {
      asked += 1;
      const body = asked % 2 === 0 ? seen[(asked / 2) % SEEN_STATES] : withNewState(input);
      return requestBytes(server.origin, body);
    };
    return (await underLoad({ server, connections: CONNECTIONS, seconds: forSeconds, next })).perSecond;
  };
  for (const server of [own.servers.fresh, without]) await rate(server, WARM_LOAD_SECONDS);
  const turns = [];
  for (let turn = 0; turn < Math.ceil(rounds / 3); turn += 1) {
    progress(`half of the states seen before: turn ${turn + 1}`);
    turns.push({ cached: await rate(own.servers.fresh, seconds), uncached: await rate(without, seconds) });
  }
  const middle = (value) => spread(turns.map(value)).median;
  return {
    cachedPerSecond: middle(({ cached }) => cached),
    uncachedPerSecond: middle(({ uncached }) => uncached),
    ratio: spread(turns.map(({ cached, uncached }) => cached / uncached)),
  };
}

export async function measureSweep({ own, inputs, rounds, threads, progress }) {
  const asking = (input) => new Asking({ key: 'new', server: own.servers.fresh, input, isKept: false });
  return sweep({ python: own.python, inputs, threads, rounds, asking, progress });
}

/**
 * Fails unless every program gives the right answers: our servers must give those of the bare graph, from new and from
 * kept states; the peers those of our own server on the same folder, to rounding; and fp32 about those of int8.
 */
async function requireCorrect(own, inputs, progress) {
  const { temperature } = modelConfig();
  for (const input of inputs) {
    const logits = await own.bare.load(input);
    for (const key of ['fresh', 'kept', 'two'].filter((name) => own.servers[name])) {
      const client = new Client(own.servers[key].origin);
      // The second answer is made from a kept state.
      for (let time = 0; time < 2; time += 1) {
        requireSameAnswers(input, logits, (await client.decide(input.body)).text, temperature);
      }
      client.close();
    }
  }
  const input = inputs[0].stateTokens >= LONG_STATE ? inputs[0] : inputs.at(-1);
  const answers = {};
  for (const peer of own.peers) {
    if (input.stateTokens > (peer.mostTokens ?? Number.POSITIVE_INFINITY)) continue;
    answers[peer.key] = await requirePeer(peer, input);
  }
  if (answers.b1 && answers.b2) {
    const { mean, max } = requireClose(answers.b2, answers.b1);
    progress(`fp32 and int8 differ by ${mean.toFixed(4)} on average, ${max.toFixed(4)} at most`);
  }
  progress('every answer is right');
}

/**
 * Asks a peer, checks its answer against our own server on the same folder, which is started for it, and returns it.
 */
async function requirePeer(peer, input) {
  const client = new Client(peer.server.origin);
  const { path, body = (text) => text } = peer.server;
  const request = requestBytes(peer.server.origin, body(input.body), path);
  const { text, ms } = await client.send(request);
  // The first request of a shape is slower than the following ones; a slow request is not sent twice to find that out.
  const again = ms > SLOW_MS ? ms : (await client.send(request)).ms;
  client.close();
  peer.oneQuestionMs = Math.min(ms, again) / input.questions;
  const reference = await peer.reference?.();
  try {
    peer.check(text, reference && (await answerOf(reference, input)), input);
  } finally {
    await reference?.stop();
  }
  return text;
}

async function answerOf({ origin }, { body }) {
  const client = new Client(origin);
  const { text } = await client.decide(body);
  client.close();
  return text;
}
