/**
 * The servers of others: they are prepared under `target/bench`, started, and asked for the same as ours or the closest
 * to it.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { MODEL, modelConfig } from './inputs.mjs';
import { freePort, start, startServer } from './server.mjs';

const FOLDER = resolve('target', 'bench');
const PYTHON = resolve('benches', 'peers', 'python');

/** The largest difference of a probability between two programs that compute the same. */
const TOLERANCE = 1e-3;
/** The largest allowed differences of a probability between fp32 and int8: on average, and for any one. */
const PRECISION_TOLERANCE = { mean: 0.03, max: 0.25 };

/**
 * Returns the Python of an environment with the packages of `benches/peers/<name>/requirements.txt`, and those of
 * `no-deps.txt` beside it without what they ask for. It is made once.
 */
export function pythonOf(name, progress) {
  const requirements = resolve('benches', 'peers', name, 'requirements.txt');
  const alone = resolve('benches', 'peers', name, 'no-deps.txt');
  const files = [requirements, ...(existsSync(alone) ? [alone] : [])];
  const folder = join(FOLDER, `venv-${name}-${digest(files)}`);
  const python = process.platform === 'win32' ? join(folder, 'Scripts', 'python.exe') : join(folder, 'bin', 'python');
  const done = join(folder, 'done');
  if (existsSync(done)) return python;
  progress(`installing ${requirements}`);
  rmSync(folder, { recursive: true, force: true });
  run(process.env.PYTHON ?? 'python3', ['-m', 'venv', folder]);
  run(python, ['-m', 'pip', 'install', '--quiet', '-r', requirements]);
  for (const file of files.slice(1)) {
    run(python, ['-m', 'pip', 'install', '--quiet', '--no-deps', '--ignore-requires-python', '-r', file]);
  }
  run(python, ['-c', `open(${JSON.stringify(done)}, 'w').close()`]);
  return python;
}

/** Returns the folders of the models that the peers serve, which are made once from the embedded model's weights. */
function peerModels(python) {
  const scripts = ['graphs.py', 'cross_encoder.py'].map((file) => join(PYTHON, file));
  const folder = join(FOLDER, `models-${digest([join(MODEL, 'config.json'), ...scripts])}`);
  const crossEncoder = join(folder, 'cross-encoder');
  if (!existsSync(join(folder, 'done'))) {
    run(python, [scripts[0], MODEL, folder]);
    run(python, [scripts[1], MODEL, crossEncoder]);
    run(python, ['-c', `open(${JSON.stringify(join(folder, 'done'))}, 'w').close()`]);
  }
  return { int8: join(folder, 'marker-int8'), fp32: join(folder, 'marker-fp32'), crossEncoder };
}

/**
 * Returns the peers that `only` names, not started: `{key, label, mostTokens?, start, check}`. `start` resolves with
 * `{origin, pid, path, body, stop}`; `check` throws if an answer is wrong.
 */
export function peers({ only, threads, progress }) {
  const wanted = ['marker', 'python', 'mosec', 'infinity'].filter((name) => only.has(name));
  if (wanted.length === 0) return [];
  const python = pythonOf('python', progress);
  const models = peerModels(python);
  const ours = (model) => () => startServer({ SVC_MODEL: model, SVC_THREADS: String(threads) });
  const serve = (script, model) => () => startPython(python, script, [model, String(threads)]);
  const like = (reference) => ({ reference, check: requireSame });
  const all = {
    marker: [{ key: 'd', label: '(d) ours, `marker` int8', start: ours(models.int8), check: requireWhole }],
    python: [
      { key: 'b1', label: '(b1) FastAPI, fp32', start: serve('server.py', models.fp32), ...like(ours(models.fp32)) },
      { key: 'b2', label: '(b2) FastAPI, int8', start: serve('server.py', models.int8), ...like(ours(models.int8)) },
    ],
    mosec: [
      {
        key: 'c1',
        label: '(c1) mosec, int8',
        // mosec would keep the 6 GB that a run on 4,000 tokens takes, in addition to b1 and b2, which also keep theirs.
        mostTokens: 1000,
        start: serve('mosec_server.py', models.int8),
        ...like(ours(models.int8)),
      },
    ],
    infinity: [infinity(models.crossEncoder, threads, progress)],
  };
  return wanted.flatMap((name) => all[name]);
}

/** Compares the fp32 graph with the int8 graph that it was made from, by the answers of our own server. */
export function requireClose(int8, fp32) {
  const differences = pairs(int8, fp32).map(([a, b]) => Math.abs(a - b));
  const mean = differences.reduce((sum, value) => sum + value, 0) / differences.length;
  const max = Math.max(...differences);
  const { mean: mostMean, max: mostMax } = PRECISION_TOLERANCE;
  if (!(mean <= mostMean && max <= mostMax)) throw new Error(`fp32 and int8 differ by ${mean}, at most ${max}`);
  return { mean, max };
}

/** Fails unless two answers count the same tokens and have the same probabilities, to `TOLERANCE`. */
function requireSame(answer, reference) {
  const [got, wanted] = [answer, reference].map((text) => JSON.parse(text).usage.input_tokens);
  if (got !== wanted) throw new Error(`${got} tokens instead of ${wanted}`);
  const max = Math.max(...pairs(answer, reference).map(([a, b]) => Math.abs(a - b)));
  if (!(max <= TOLERANCE)) throw new Error(`a probability differs by ${max}`);
}

/**
 * Fails unless every question is answered: our own server on this folder is the reference, so no other can check it.
 */
function requireWhole(answer, _reference, { questions }) {
  const sums = Object.values(JSON.parse(answer).answers).map(({ probabilities }) =>
    Object.values(probabilities).reduce((sum, value) => sum + value, 0),
  );
  if (sums.length !== questions || sums.some((sum) => !(Math.abs(sum - 1) < 1e-6))) throw new Error(`sums ${sums}`);
}

/** Returns the probabilities of two answers as pairs. */
function pairs(...texts) {
  const [first, second] = texts.map((text) => JSON.parse(text).answers);
  return Object.entries(first).flatMap(([id, { probabilities }]) =>
    Object.entries(probabilities).map(([label, value]) => [value, second[id]?.probabilities[label]]),
  );
}

async function startPython(python, script, args) {
  const port = await freePort();
  const server = await start({
    name: script,
    command: [python, join(PYTHON, script), ...args, ...(script === 'server.py' ? [String(port)] : [])],
    env: {
      ...process.env,
      MOSEC_PORT: String(port),
      MOSEC_ADDRESS: '127.0.0.1',
      MOSEC_LOG_LEVEL: 'warning',
      MOSEC_TIMEOUT: '120000',
    },
    find: () => `http://127.0.0.1:${port}`,
    ready: script === 'server.py' ? '/readyz' : '/metrics',
  });
  return server;
}

/** Returns the peer that ranks the questions' texts by the state: one pair of texts and one score for each question. */
function infinity(model, threads, progress) {
  const label = '(c2) infinity-emb, torch fp32, rerank';
  return { key: 'c2', label, mostTokens: 1000, start: startInfinity, check: requireScores };

  async function startInfinity() {
    const python = pythonOf('infinity', progress);
    const port = await freePort();
    const offline = {
      HF_HUB_OFFLINE: '1',
      TRANSFORMERS_OFFLINE: '1',
      DO_NOT_TRACK: '1',
      INFINITY_ANONYMOUS_USAGE_STATS: '0',
    };
    const options = ['--engine', 'torch', '--device', 'cpu', '--dtype', 'float32', '--no-bettertransformer'];
    const server = await start({
      name: 'infinity-emb',
      command: [
        ...[join(dirname(python), 'infinity_emb'), 'v2', '--model-id', model, ...options],
        ...['--host', '127.0.0.1', '--port', String(port), '--no-model-warmup', '--log-level', 'warning'],
      ],
      env: { ...process.env, ...offline, OMP_NUM_THREADS: String(threads) },
      find: () => `http://127.0.0.1:${port}`,
      ready: '/health',
    });
    return { ...server, path: '/rerank', body: rerank };
  }
}

function rerank(body) {
  const { state, questions } = JSON.parse(body);
  const documents = Object.values(questions).map(({ type, instructions, criteria }) =>
    [
      `${type} question: ${instructions}`,
      ...Object.entries(criteria ?? {}).map(([key, text]) => `${key}: ${text}`),
    ].join(' '),
  );
  return JSON.stringify({ query: state, documents, raw_scores: true, model: 'default/not-specified' });
}

/** Fails unless every pair has a finite score. The model was not trained to rank, so nothing more can be checked. */
function requireScores(answer, _reference, { questions }) {
  const scores = JSON.parse(answer).results.map(({ relevance_score: score }) => score);
  if (scores.length !== questions || !scores.every(Number.isFinite)) throw new Error(`scores ${scores}`);
}

function digest(files) {
  const hash = createHash('sha256').update(modelConfig().sha256);
  for (const file of files) hash.update(readFileSync(file));
  return hash.digest('hex').slice(0, 12);
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}`);
}
