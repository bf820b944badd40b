/**
 * Measures the embedded model on the processor and on another device, in turns: the latency of a lone request about a
 * new state, and the answers per second for many callers. Prints a table and writes nothing.
 *
 *     node benches/device.mjs --device cuda --runtime /opt/onnxruntime/libonnxruntime.so.1
 */
import { cpus } from 'node:os';
import { resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MODEL, readInputs, withNewState } from './inputs.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { defaultRuntime, loadEngine } = await import('../dist/src/engine/addon.js');
const { localEngineOptions } = await import('../dist/src/in-process/options.js');

const { values: flags } = parseArgs({
  options: {
    device: { type: 'string', default: 'gpu' },
    runtime: { type: 'string', default: defaultRuntime() },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
  },
});
const rounds = Number(flags.rounds);
const turnMs = Number(flags.seconds) * 1000;
const CALLERS = 16;
const QUESTIONS = new Set([1, 8]);

async function decide(engine, body) {
  const reply = await engine.decide(Buffer.from(body));
  if (reply.failure) throw new Error(reply.failure.message);
  return reply;
}

/** The largest allowed difference of a probability, as at a start: wrong answers are not timed. */
const AGREEMENT = 0.01;

function requireAgreement({ name }, replies) {
  const [expected, got] = replies.map((reply) => JSON.parse(reply.body.toString('utf8')).answers);
  for (const [id, { probabilities }] of Object.entries(expected)) {
    for (const [option, probability] of Object.entries(probabilities)) {
      const other = got[id].probabilities[option];
      // The comparison is written so that NaN also fails.
      if (!(Math.abs(other - probability) <= AGREEMENT)) {
        throw new Error(`${name}: ${id}: ${option} is ${other}, the processor says ${probability}`);
      }
    }
  }
}

/**
 * Asks about new states with `callers` callers for one turn; returns each answer's milliseconds and the answers per
 * second.
 */
async function turn(engine, input, callers) {
  const times = [];
  const startMs = performance.now();
  const caller = async () => {
    while (performance.now() - startMs < turnMs) {
      const beganMs = performance.now();
      await decide(engine, withNewState(input));
      times.push(performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return { times, perSecond: (times.length * 1000) / (performance.now() - startMs) };
}

const quantile = (values, share) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)];

/** Measures lone and busy turns of both engines in alternation, so that a disturbance meets both. */
async function measure(engines, input) {
  const results = engines.map(() => ({ times: [], perSecond: [] }));
  for (let round = 0; round < rounds; round++) {
    for (const [at, engine] of engines.entries()) {
      results[at].times.push(...(await turn(engine, input, 1)).times);
      results[at].perSecond.push((await turn(engine, input, CALLERS)).perSecond);
    }
  }
  return results.map(({ times, perSecond }) => ({
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    perSecond: quantile(perSecond, 0.5),
  }));
}

async function open(device) {
  const runtime = resolve(flags.runtime);
  return loadEngine(localEngineOptions({ model: resolve(MODEL), runtime, device, stateCacheBytes: 0 }));
}

const engines = [await open('cpu'), await open(flags.device)];
const names = engines.map((engine) => engine.info().device);
const inputs = readInputs().filter(({ questions }) => QUESTIONS.has(questions));
const rows = [];
for (const input of inputs) {
  requireAgreement(input, await Promise.all(engines.map((engine) => decide(engine, input.body))));
  process.stderr.write(`device: ${input.name}\n`);
  const [own, other] = await measure(engines, input);
  const cells = [own, other].flatMap(({ p50, p95, perSecond }) => [
    `${p50.toFixed(1)} (${p95.toFixed(1)})`,
    perSecond.toFixed(1),
  ]);
  rows.push([input.stateTokens, input.questions, ...cells, (own.p50 / other.p50).toFixed(2)]);
}
const heads = names.flatMap((name) => [`${name}: ms, p50 (p95)`, `${name}: answers/s, ${CALLERS} callers`]);
const line = (cells) => `| ${cells.join(' | ')} |\n`;
process.stdout.write(`${cpus()[0]?.model.trim()}, ${engines[0].info().threads} threads, Node ${process.version}.\n\n`);
process.stdout.write(line(['state, tokens', 'questions', ...heads, `${names[0]} / ${names[1]}, p50`]));
process.stdout.write(line(Array(heads.length + 3).fill('---')));
for (const row of rows) process.stdout.write(line(row));
for (const engine of engines) await engine.close();
