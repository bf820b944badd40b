/**
 * `npm run bench`: whole requests against the bare graph, on the same rows, in turns. `--quick` makes it short and writes
 * nothing; else the results go to `benches/results/latest.json` and into `benches/README.md`.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { requireSameAnswers } from './check.mjs';
import { modelConfig, readInputs } from './inputs.mjs';
import { measureLatency, measureThroughput } from './measure.mjs';
import { report } from './report.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { openRaw } = await import('./raw.mjs');
const { Client, startServer } = await import('./server.mjs');

const FULL = { rounds: 10, block: 40, seconds: 4 };
const QUICK = { rounds: 3, block: 8, seconds: 1 };
const CONNECTIONS = [1, 32];

const { values: flags } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const options = { ...(flags.quick ? QUICK : FULL), threads: Math.min(2, os.availableParallelism()) };

/** Asks about every input twice: the second answer is made from a kept state, where states are kept. */
async function requireCorrect(inputs, { raw, client, isKept }) {
  const { temperature } = modelConfig();
  for (const input of inputs) {
    const { logits } = await raw.run(await raw.prepare(input, isKept));
    for (const { text } of [await client.decide(input.body), await client.decide(input.body)]) {
      requireSameAnswers(input, logits, text, temperature);
    }
  }
  progress(`${inputs.length} inputs: the server answers what the bare graph says`);
}

async function measureLatencies(inputs, parts) {
  const results = [];
  for (const input of inputs) {
    progress(`latency: ${input.name}`);
    results.push({ input, isKept: parts.isKept, ...(await measureLatency({ ...options, ...parts, input })) });
  }
  return results;
}

async function measureThroughputs(inputs, parts) {
  const results = [];
  for (const input of inputs) {
    for (const connections of CONNECTIONS) {
      progress(`throughput: ${input.name}, ${connections} connections`);
      const measured = await measureThroughput({ ...options, ...parts, input, connections });
      results.push({ input, isKept: parts.isKept, connections, ...measured });
    }
  }
  return results;
}

/** Measures all inputs on a server that keeps states, or on one that reads them every time. */
async function measure(inputs, raw, isKept) {
  progress(isKept ? 'states are kept' : 'states are read every time');
  const settings = { SVC_THREADS: String(options.threads), ...(!isKept && { SVC_STATE_CACHE_BYTES: '0' }) };
  const server = await startServer(settings);
  const client = new Client(server.origin);
  try {
    const parts = { raw, client, isKept, origin: server.origin };
    await requireCorrect(inputs, parts);
    const latency = await measureLatencies(inputs, parts);
    return { latency, throughput: await measureThroughputs(inputs, parts) };
  } finally {
    client.close();
    await server.stop();
  }
}

function machine() {
  const { version } = JSON.parse(readFileSync('node_modules/onnxruntime-node/package.json', 'utf8'));
  const { name, version: modelVersion } = modelConfig();
  return {
    cpu: os.cpus()[0]?.model ?? 'unknown processor',
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.platform()} ${os.arch()}`,
    node: process.versions.node,
    onnxRuntime: version,
    model: `${name} ${modelVersion}`,
  };
}

/** Rows and bodies are in the inputs already. */
function withoutRows(results) {
  return results.map(({ input, ...rest }) => ({ stateTokens: input.stateTokens, questions: input.questions, ...rest }));
}

function write(results, markdown) {
  const { latency, throughput, ...about } = results;
  const json = { ...about, latency: withoutRows(latency), throughput: withoutRows(throughput) };
  mkdirSync('benches/results', { recursive: true });
  writeFileSync('benches/results/latest.json', `${JSON.stringify(json, roundNumber, 2)}\n`);
  const page = readFileSync('benches/README.md', 'utf8');
  const between = /(?<=<!-- results -->\n).*(?=<!-- end of results -->)/s;
  if (!between.test(page)) throw new Error('benches/README.md has lost its markers');
  writeFileSync(
    'benches/README.md',
    page.replace(between, () => `\n${markdown}\n`),
  );
}

function roundNumber(_key, value) {
  return typeof value === 'number' ? Math.round(value * 1e4) / 1e4 : value;
}

function progress(text) {
  process.stderr.write(`bench: ${text}\n`);
}

// A bench that is stopped takes its server with it.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const inputs = readInputs();
const before = os.loadavg()[0];
const raw = await openRaw(options.threads);
const read = await measure(inputs, raw, false);
const kept = await measure(inputs, raw, true);
const results = {
  date: new Date().toISOString().slice(0, 10),
  machine: { ...machine(), load: { before, after: os.loadavg()[0] } },
  options,
  latency: [...read.latency, ...kept.latency],
  throughput: [...read.throughput, ...kept.throughput],
};
const markdown = report(results);
process.stdout.write(`\n${markdown}`);
if (!flags.quick) write(results, markdown);
