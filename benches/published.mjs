/**
 * `node benches/published.mjs`: the same decision encoder of the size of Laya, with random int8 weights, served by
 * decision-toolkit, by edgejev and by this server, each by its own HTTP server. Writes its tables into README.md. Needs
 * Python 3.11 or newer, 6 GB of memory, and a machine that does nothing else.
 *
 *     node benches/published.mjs [--turns 3] [--starts 2] [--seconds 3] [--minutes 11] [--states 40,164,512]
 *                                [--tiny] [--dry] [--prepare]
 *
 * `--tiny` takes a small model, `--dry` only prints, `--prepare` only installs the packages and makes the model. A turn
 * that would end after `--minutes` is not begun, except the first.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MODEL, readInputs, withNewState } from './inputs.mjs';
import { percentile, spread } from './measure.mjs';
import { circumstances, ratioText, table, writeSection } from './section.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { pythonOf } = await import('./peers.mjs');
const { Client, freePort, requestBytes, residentBytes, start, startServer } = await import('./server.mjs');

const THREADS = 2;
const CALLERS = 8;
const QUESTIONS = [1, 8];
/** The states are the first words of this one, whose tokens are counted. */
const LONGEST = 912;
/**
 * The largest difference of a probability between runs of the same row: this server sums up layer norms in another order,
 * and each input of an 8-bit product that falls to another place moves all that follows.
 */
const TOLERANCE = 4e-2;
/** The same where edgejev runs several questions as one batch, which has one range of inputs for all of its rows. */
const BATCH_TOLERANCE = 5e-2;
/** The least difference between the probabilities of two texts, so that the comparison can fail. */
const APART = 5e-2;
/** The time of the requests of one series in a turn, with one caller. */
const BLOCK_MS = 3000;
const MOST_REQUESTS = 40;
/** Callers ask at the same time only where all of them are answered in this time. */
const LOAD_MS = 30_000;

const { values: flags } = parseArgs({
  options: {
    turns: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
    minutes: { type: 'string', default: '11' },
    starts: { type: 'string', default: '2' },
    states: { type: 'string', default: '40,164,512' },
    tiny: { type: 'boolean', default: false },
    dry: { type: 'boolean', default: false },
    prepare: { type: 'boolean', default: false },
  },
});
const [turns, seconds, minutes, starts] = [flags.turns, flags.seconds, flags.minutes, flags.starts].map(Number);
const beganMs = performance.now();
const progress = (text) => {
  const passed = ((performance.now() - beganMs) / 1000).toFixed(0);
  process.stderr.write(`published: ${passed} s: ${text}\n`);
};

/** Returns the folder of the model, which is made once. */
function modelFolder(python) {
  const script = resolve('benches', 'peers', 'published', 'laya.py');
  const shape = flags.tiny ? 'tiny' : 'large';
  const tokenizer = resolve(MODEL, 'tokenizer.json');
  const hash = createHash('sha256');
  for (const file of [script, tokenizer]) hash.update(readFileSync(file));
  const folder = resolve('target', 'bench', `laya-${shape}-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  progress(`making ${folder}`);
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  const made = spawnSync(python, [script, partial, tokenizer, shape], { stdio: 'inherit' });
  if (made.status !== 0) throw new Error(`${script} failed`);
  renameSync(partial, folder);
  return folder;
}

/** The servers: `{key, label, start}`, in the order of a turn. */
function servers(python, model, home) {
  const files = ['model=model.onnx', 'tokenizer=tokenizer.json', 'config=rl_agent_config.json'];
  return [
    {
      key: 'decision-toolkit',
      start: () =>
        startPeer('decision-toolkit', '/health', (port) => [
          ...[join(dirname(python), 'dtk'), '--home', home, 'serve', '--model', model, '--adapter', 'laya'],
          ...files.flatMap((file) => ['--files', file]),
          ...[
            '--threads',
            String(THREADS),
            '--max-concurrent',
            String(CALLERS),
            '--timeout',
            '600',
            '--port',
            String(port),
          ],
        ]),
    },
    {
      key: 'edgejev',
      start: () =>
        startPeer('edgejev', '/health', (port) => [
          ...[join(dirname(python), 'edgejev'), 'serve', '--model', model, '--provider', 'cpu'],
          ...['--threads', String(THREADS), '--port', String(port)],
        ]),
    },
    {
      key: 'svc',
      start: () =>
        startServer({
          SVC_MODEL: model,
          SVC_THREADS: String(THREADS),
          SVC_REQUEST_TIMEOUT_MS: '600000',
          SVC_MAX_RUN_MS: '600000',
        }),
    },
  ];
}

async function startPeer(name, ready, command) {
  const port = await freePort();
  const env = { ...process.env, ORT_DISABLE_TELEMETRY: '1', PYTHONDONTWRITEBYTECODE: '1' };
  return start({ name, command: command(port), env, find: () => `http://127.0.0.1:${port}`, ready });
}

/**
 * Returns the inputs, the shortest state first: `{stateTokens, questions, body}`. The words and the questions are those
 * of the other measurements, in a form that all three servers read.
 */
function readStates() {
  const inputs = readInputs().filter(({ stateTokens }) => stateTokens === LONGEST);
  const { model } = JSON.parse(readFileSync(join(MODEL, 'tokenizer.json'), 'utf8'));
  const pieces = new Map(Object.entries(model.vocab).map(([piece, id]) => [id, piece]));
  return flags.states.split(',').flatMap((text) =>
    QUESTIONS.map((questions) => {
      const { body, rows } = inputs.find((input) => input.questions === questions);
      const ids = rows.state.flatMap(({ ids: row }) => row).filter((id) => !pieces.get(id).startsWith('['));
      const words = ids.slice(0, Number(text)).map((id) => pieces.get(id));
      const state = words.join(' ').replaceAll(' ##', '');
      const asked = Object.entries(JSON.parse(body).questions).map(([id, question]) => [id, described(question)]);
      return {
        stateTokens: words.length,
        questions,
        body: JSON.stringify({ state, questions: Object.fromEntries(asked) }),
      };
    }),
  );
}

/** Gives the options of a choice descriptions, which decision-toolkit asks for. */
function described({ criteria, ...question }) {
  if (criteria === undefined) return question;
  const isBare = question.type === 'choice' && Array.isArray(criteria);
  return { ...question, criteria: isBare ? Object.fromEntries(criteria.map((name) => [name, name])) : criteria };
}

/** Returns all probabilities of an answer; of a noul the one of true, as edgejev gives no other. */
function probabilities(text) {
  return Object.values(JSON.parse(text).answers).flatMap(({ type, noul, probabilities: given }) =>
    type === 'noul' ? [noul] : Object.values(given),
  );
}

function furthest(one, other) {
  if (one.length !== other.length) throw new Error(`${one.length} probabilities and ${other.length}`);
  return Math.max(...one.map((value, index) => Math.abs(value - other[index])));
}

/**
 * Fails unless all servers give the same probabilities to a request and read as many tokens, and give others about
 * another state. Returns the largest differences from ours: of each question alone, and of all in one request.
 */
async function requireSame(all, { body, questions: count }, other) {
  const ask = (key, text) => all.find((one) => one.key === key).client.decide(text);
  const { text } = await ask('svc', body);
  const reference = probabilities(text);
  const { state, questions } = JSON.parse(body);
  const single = [];
  for (const [id, question] of Object.entries(questions)) {
    const answer = await ask('edgejev', JSON.stringify({ state, questions: { [id]: question } }));
    single.push(...probabilities(answer.text));
  }
  const whole = (await ask('edgejev', body)).text;
  const alone = Math.max(
    furthest(single, reference),
    furthest(probabilities((await ask('decision-toolkit', body)).text), reference),
  );
  const batch = furthest(probabilities(whole), reference);
  if (!(alone <= TOLERANCE && batch <= (count > 1 ? BATCH_TOLERANCE : TOLERANCE))) {
    throw new Error(`probabilities differ by ${alone}, and by ${batch} in a batch`);
  }
  // decision-toolkit counts words, not tokens.
  const tokens = [text, whole].map((answer) => JSON.parse(answer).usage.input_tokens);
  if (new Set(tokens).size !== 1) throw new Error(`the servers have read ${tokens} tokens`);
  const apart = furthest(probabilities((await ask('svc', other)).text), reference);
  if (count > 1 && !(apart >= APART)) throw new Error(`two states have nearly the same answers: ${apart}`);
  return { alone, batch };
}

/** Starts a server and asks it once; adds the time from its start to its first answer. */
async function startAndAsk(one, body) {
  const startMs = performance.now();
  const server = await one.start();
  const client = new Client(server.origin);
  await client.decide(body);
  one.firstMs.push(performance.now() - startMs);
  return { server, client };
}

/** Starts all servers in turns, as often as wanted; those of the last turn go on running. */
async function startAll(all, body, keep) {
  for (let turn = 1; turn <= starts; turn += 1) {
    for (const one of all) {
      const { server, client } = await startAndAsk(one, body);
      if (turn === starts) {
        keep({ server, client });
        Object.assign(one, { server, client });
      } else {
        client.close();
        await server.stop();
      }
      progress(`${one.key}: first answer after ${(one.firstMs.at(-1) / 1000).toFixed(1)} s`);
    }
  }
}

/** Asks one request after another; returns their times. */
async function alone({ server }, input, times) {
  const taken = [];
  for (const bytes of newRequests(server, input, times)) taken.push(await timeOf(server, bytes));
  return taken;
}

/** Asks as many requests by each of several callers, one after another; returns their times and their rate. */
async function together({ server }, input, times) {
  const callers = Array.from({ length: CALLERS }, () => newRequests(server, input, times));
  const taken = [];
  const startMs = performance.now();
  const ask = async (requests) => {
    for (const bytes of requests) taken.push(await timeOf(server, bytes));
  };
  await Promise.all(callers.map(ask));
  return { taken, perSecond: (1000 * taken.length) / (performance.now() - startMs) };
}

function newRequests({ origin }, input, times) {
  return Array.from({ length: times }, () => requestBytes(origin, withNewState(input)));
}

/**
 * Returns the time of a request on a connection of its own, from the write on. On a connection that was used before,
 * edgejev's server waits 40 ms for an acknowledgement between the head and the body of its answer.
 */
async function timeOf({ origin }, bytes) {
  const client = new Client(origin);
  try {
    return (await client.send(bytes)).ms;
  } finally {
    client.close();
  }
}

/** Measures one input on all servers, every other turn in the opposite order. */
async function measureInput(row, all, turn) {
  for (const one of turn % 2 === 0 ? all : all.toReversed()) {
    const series = row.series.get(one.key);
    series.estimateMs ??= (await alone(one, row.input, 1))[0];
    const times = Math.max(1, Math.min(MOST_REQUESTS, Math.round(BLOCK_MS / series.estimateMs)));
    series.alone.push(await alone(one, row.input, times));
    const wholeMs = CALLERS * series.estimateMs;
    if (wholeMs <= LOAD_MS)
      series.together.push(await together(one, row.input, Math.max(1, Math.round((seconds * 1000) / wholeMs))));
  }
}

function newRow(input, all) {
  return { input, series: new Map(all.map(({ key }) => [key, { alone: [], together: [] }])) };
}

const fixed = (value, places = 2) => value.toFixed(places);

/** Returns the median of the turns' ratios, with the least and the greatest. */
function ratio(values) {
  return values.length === 0 ? '' : ratioText(spread(values));
}

function comparison(rows, others) {
  const head = ['state', 'questions', 'svc p50', ...others.map(({ key }) => `${key} time / svc`)];
  head.push(`svc requests/s at ${CALLERS}`, ...others.map(({ key }) => `svc / ${key} requests/s`));
  const lines = rows.map(({ input, series }) => {
    const own = series.get('svc');
    const times = others.map(({ key }) => {
      const theirs = series.get(key).alone;
      return ratio(theirs.map((taken, turn) => percentile(taken, 50) / percentile(own.alone[turn], 50)));
    });
    const rates = others.map(({ key }) => {
      const theirs = series.get(key).together;
      const both = Math.min(theirs.length, own.together.length);
      return ratio(theirs.slice(0, both).map(({ perSecond }, turn) => own.together[turn].perSecond / perSecond));
    });
    const ownRate = own.together.length > 0 ? fixed(spread(own.together.map(({ perSecond }) => perSecond)).median) : '';
    return [
      input.stateTokens,
      input.questions,
      fixed(percentile(own.alone.flat(), 50), 0),
      ...times,
      ownRate,
      ...rates,
    ];
  });
  return table([head, ...lines]);
}

function figures(rows, all) {
  const head = [
    'server',
    'state',
    'questions',
    'samples',
    'p50, p99',
    'requests/s at 1',
    `at ${CALLERS}`,
    `samples at ${CALLERS}`,
    `p50, p99 at ${CALLERS}`,
  ];
  const lines = all.flatMap(({ key }) =>
    rows.map(({ input, series }) => {
      const { alone: turnsAlone, together: loaded } = series.get(key);
      const [lone, many] = [turnsAlone.flat(), loaded.flatMap(({ taken }) => taken)];
      const both = (values) => [50, 99].map((percent) => fixed(percentile(values, percent), 0)).join(', ');
      const rate = (1000 * lone.length) / lone.reduce((sum, ms) => sum + ms, 0);
      const rest =
        many.length > 0
          ? [fixed(spread(loaded.map(({ perSecond }) => perSecond)).median), many.length, both(many)]
          : ['', '', ''];
      return [key, input.stateTokens, input.questions, lone.length, both(lone), fixed(rate), ...rest];
    }),
  );
  return table([head, ...lines]);
}

function starting(all) {
  const lines = all.map(({ key, firstMs, residentAtStart, server }) => [
    key,
    fixed(spread(firstMs).median / 1000, 1),
    ...[residentAtStart, residentBytes(server.pid)].map((bytes) => fixed(bytes / 2 ** 20, 0)),
  ]);
  return table([
    ['server', 'first answer after the start, s', 'resident after it, MiB', 'resident at the end'],
    ...lines,
  ]);
}

const python = pythonOf('published', progress);
const model = modelFolder(python);
if (flags.prepare) process.exit();
const { weights } = JSON.parse(readFileSync(join(model, 'size.json'), 'utf8'));
const home = mkdtempSync(join(os.tmpdir(), 'svc-published-'));
const all = servers(python, model, home).map((one) => ({ ...one, firstMs: [] }));
const others = all.filter(({ key }) => key !== 'svc');
const running = [];
try {
  const inputs = readStates();
  const small = inputs.filter(({ stateTokens }) => stateTokens < 512);
  await startAll(all, small[0].body, (one) => running.unshift(one));
  for (const one of all) one.residentAtStart = residentBytes(one.server.pid);
  const differences = [];
  for (const input of small) differences.push(await requireSame(all, input, withNewState(input)));
  const [aloneMost, batchMost] = ['alone', 'batch'].map((kind) =>
    fixed(Math.max(...differences.map((one) => one[kind])), 6),
  );
  progress(`probabilities differ by ${aloneMost} at most, in a batch by ${batchMost}`);
  const rows = inputs.map((input) => newRow(input, all));
  let [done, turnMs] = [0, 0];
  while (done < turns && (done === 0 || performance.now() - beganMs + turnMs < minutes * 60_000)) {
    const startMs = performance.now();
    for (const row of done % 2 === 0 ? rows : rows.toReversed()) {
      await measureInput(row, all, done);
      progress(`turn ${done + 1}: ${row.input.stateTokens} tokens, ${row.input.questions} questions`);
    }
    done += 1;
    turnMs = performance.now() - startMs;
  }
  const note =
    `${fixed(weights / 1e6, 0)} million weights; ${THREADS} threads; times in milliseconds; turns: ${done}; ratios are those of the ` +
    `medians of a turn: the median of all turns, with the least and the greatest. The probabilities of the three differed by ${aloneMost} at most, and by ${batchMost} where edgejev ran all questions as one batch.`;
  const details = `<details><summary>The figures of each</summary>\n\n${figures(rows, all)}\n\n</details>`;
  const text = [comparison(rows, others), note, starting(all), details, circumstances()].join('\n\n');
  process.stdout.write(`${text}\n`);
  if (!flags.dry && !flags.tiny) writeSection('benches/README.md', 'published', text);
} finally {
  for (const { client, server } of running) {
    client.close();
    await server.stop();
  }
  rmSync(home, { recursive: true, force: true });
}
