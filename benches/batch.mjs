/**
 * `node benches/batch.mjs`: measures the cost of a batch of 1,000 short states with four questions outside the model,
 * against as many single requests over eight connections. The two take turns; every state is new. Run it on a machine
 * that does nothing else.
 */
import assert from 'node:assert/strict';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readInputs, withNewState } from './inputs.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { Client, requestBytes, startServer } = await import('./server.mjs');

const STATES = 1000;
const CONNECTIONS = 8;

const { values: flags } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const rounds = Number(flags.rounds);
const input = readInputs().find(({ stateTokens, questions }) => stateTokens === 20 && questions === 4);
const { questions } = JSON.parse(input.body);
const newStates = () => Array.from({ length: STATES }, () => JSON.parse(withNewState(input)).state);

/** Returns the milliseconds per state: in total, on the model, and the rest, in which the model did nothing. */
function perState(ms, runMs) {
  return { total: ms / STATES, run: runMs / STATES, outside: (ms - runMs) / STATES };
}

async function singles(origin, states) {
  const requests = states.map((state) => requestBytes(origin, JSON.stringify({ state, questions })));
  const clients = Array.from({ length: CONNECTIONS }, () => new Client(origin));
  const answers = [];
  const startMs = performance.now();
  let next = 0;
  const ask = async (client) => {
    for (let index = next++; index < STATES; index = next++) answers[index] = await client.send(requests[index]);
  };
  await Promise.all(clients.map(ask));
  const ms = performance.now() - startMs;
  for (const client of clients) client.close();
  const runMs = answers.reduce((sum, { timing }) => sum + timing.run, 0);
  return { answers: answers.map(({ text }) => JSON.parse(text).answers), ...perState(ms, runMs) };
}

async function batch(origin, states) {
  const client = new Client(origin);
  const bytes = requestBytes(origin, JSON.stringify({ states, questions }), '/v1/systemone/batch');
  const { ms, text, timing } = await client.send(bytes);
  client.close();
  return { answers: JSON.parse(text).results.map(({ answers }) => answers), ...perState(ms, timing.run) };
}

/** Fails unless the batch and the single requests give the same answers about the same states. */
async function check(origin) {
  const states = newStates();
  assert.deepEqual((await batch(origin, states)).answers, (await singles(origin, states)).answers);
}

const fixed = (number) => number.toFixed(3);
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

const server = await startServer({});
try {
  await check(server.origin);
  const measured = { singles: [], batch: [] };
  const ways = { singles, batch };
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? ['singles', 'batch'] : ['batch', 'singles'];
    for (const name of order) {
      const figures = await ways[name](server.origin, newStates());
      measured[name].push(figures);
      const { total, run, outside } = figures;
      process.stdout.write(`${name}: ${fixed(total)} ms a state, run ${fixed(run)}, outside ${fixed(outside)}\n`);
    }
  }
  for (const figure of ['total', 'run', 'outside']) {
    const [one, many] = ['singles', 'batch'].map((name) => median(measured[name].map((figures) => figures[figure])));
    const ratio = median(measured.batch.map((figures, index) => figures[figure] / measured.singles[index][figure]));
    process.stdout.write(`${figure}: singles ${fixed(one)}, batch ${fixed(many)}, ratio ${fixed(ratio)}\n`);
  }
  process.stdout.write(`load ${os.loadavg()[0].toFixed(1)}\n`);
} finally {
  await server.stop();
}
