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

const FULL = { rounds: 10, block: 40, seconds: 5 };
const QUICK = { rounds: 3, block: 8, seconds: 1 };
const CONNECTIONS = [1, 32];

const { values: flags } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const options = { ...(flags.quick ? QUICK : FULL), threads: Math.min(2, os.availableParallelism()) };

async function requireCorrect(inputs, { raw, client }) {
  const { temperature } = modelConfig();
  for (const input of inputs) {
    const { logits } = await raw.run(raw.prepare(input));
    const { text } = await client.decide(input.body);
    requireSameAnswers(input, logits, text, temperature);
  }
  progress(`${inputs.length} inputs: the server answers what the bare graph says`);
}

async function measure(inputs, { raw, client, origin }) {
  const latency = [];
  for (const input of inputs) {
    progress(`latency: ${input.name}`);
    latency.push({ input, ...(await measureLatency({ ...options, raw, client, input })) });
  }
  const throughput = [];
  for (const { input, rawMs } of latency) {
    for (const connections of CONNECTIONS) {
      progress(`throughput: ${input.name}, ${connections} connections`);
      const measured = await measureThroughput({ ...options, origin, input, connections });
      // 1 when the server answers as many requests a second as the bare graph could run, one after the other.
      const share = (measured.requestsPerSecond * rawMs.p50) / 1000;
      throughput.push({ input, connections, share, ...measured });
    }
  }
  return { latency, throughput };
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
  return results.map(({ input: { stateTokens, questions }, ...rest }) => ({ stateTokens, questions, ...rest }));
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

const inputs = readInputs();
const before = os.loadavg()[0];
const raw = await openRaw(options.threads);
// A kept state is not read again: the bare graph, which reads it every time, would be compared with less work.
const server = await startServer({ SVC_THREADS: String(options.threads), SVC_STATE_CACHE_BYTES: '0' });
const client = new Client(server.origin);
try {
  const parts = { raw, client, origin: server.origin };
  await requireCorrect(inputs, parts);
  const measured = await measure(inputs, parts);
  const load = { before, after: os.loadavg()[0] };
  const results = {
    date: new Date().toISOString().slice(0, 10),
    machine: { ...machine(), load },
    options,
    ...measured,
  };
  const markdown = report(results);
  process.stdout.write(`\n${markdown}`);
  if (!flags.quick) write(results, markdown);
} finally {
  client.close();
  await server.stop();
}
