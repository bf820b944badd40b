/**
 * A soak test: it runs the embedded model for an hour under a mixed load that is a share of its capacity, so that
 * growth of memory, of open descriptors or of latency shows. The arrivals are a Poisson process: callers do not wait
 * for each other. Nothing else should run on the machine. Writes its results into docs/test-long.md.
 *
 *     node scripts/soak.mjs [--minutes 60] [--share 0.8] [--seed 1]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { randomOf } from './random.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    share: { type: 'string', default: '0.8' },
    seed: { type: 'string', default: '1' },
  },
});
const [minutes, share] = [Number(values.minutes), Number(values.share)];

const PAGE = join('docs', 'test-long.md');
const HEADING = '## Soak';
const CAPACITY_SECONDS = 60;
const CAPACITY_CALLERS = 8;
const SPANS = 6;
const SAMPLE_MS = 15_000;
/** The fewest and the most words of a state, where each length is as likely as its double, and the most questions. */
const [FEWEST_WORDS, MOST_WORDS, MOST_QUESTIONS] = [20, 900, 16];
const WORDS = readFileSync('README.md', 'utf8').match(/[a-z]{3,}/g);

const random = randomOf(Number(values.seed));
const pick = (list) => list[Math.floor(random() * list.length)];

function question(number) {
  const word = pick(WORDS);
  if (number % 3 === 0) return { type: 'noul', instructions: `Is it about ${word}?` };
  if (number % 3 === 1)
    return {
      type: 'choice',
      instructions: `Who handles ${word}?`,
      criteria: { billing: 'payments', tech: '', sales: '' },
    };
  return { type: 'score', instructions: `How urgent is ${word}?`, criteria: ['not at all', 'somewhat', 'very'] };
}

/** Returns a request about a state that was never seen before. */
function mixedRequest() {
  const count = Math.round(FEWEST_WORDS * (MOST_WORDS / FEWEST_WORDS) ** random());
  const state = Array.from({ length: count }, () => pick(WORDS)).join(' ');
  const questions = Array.from({ length: 1 + Math.floor(random() * MOST_QUESTIONS) }, (_, n) => [`q${n}`, question(n)]);
  return JSON.stringify({ state, questions: Object.fromEntries(questions) });
}

const PROBE = JSON.stringify({
  state: 'My card was charged twice and nobody answers my mails',
  questions: { refund: { type: 'noul', instructions: 'Does the customer want money back?' } },
});

/** Starts the server in the way a user does, and returns its process, its port, and the end of its log. */
async function startServer(cwd) {
  const args = [resolve('bin', 'svc.js'), 'serve', '--listen', '127.0.0.1:0', '--device', 'cpu'];
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  let port;
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log = (log + text).slice(-20_000);
    port ??= /127\.0\.0\.1:(\d+)/.exec(log)?.[1];
  });
  while (!/model .+ loaded/.test(log)) {
    if (child.exitCode !== null) throw new Error(log);
    await sleep(20);
  }
  return { child, port: Number(port), lastWords: () => log.split('\n').slice(-3).join(' ') };
}

const agent = new Agent({ keepAlive: true });

/** Sends one decision; returns its status, its answers as text, and the milliseconds from sending to the last byte. */
async function decide(port, body) {
  const startMs = performance.now();
  const headers = { 'Content-Length': Buffer.byteLength(body) };
  const req = request({ host: '127.0.0.1', port, agent, method: 'POST', path: '/v1/systemone', headers });
  req.end(body);
  const [res] = await once(req, 'response');
  const text = (await buffer(res)).toString('utf8');
  const answers = text.slice(0, text.lastIndexOf(',"usage":'));
  return { status: res.statusCode, answers, ms: performance.now() - startMs };
}

/** Returns the number of requests per second of callers that each wait for their answer. */
async function capacityOf(port) {
  const endMs = performance.now() + CAPACITY_SECONDS * 1000;
  let count = 0;
  const caller = async () => {
    for (; performance.now() < endMs; count += 1) await decide(port, mixedRequest());
  };
  await Promise.all(Array.from({ length: CAPACITY_CALLERS }, caller));
  return count / CAPACITY_SECONDS;
}

/** Returns the resident memory of a process, in MiB, and its number of open descriptors. */
function sample(pid, atMs) {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return { atMs, rssMiB: Number(kib) / 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

async function sampleUntil(pid, startMs, endMs) {
  const samples = [];
  for (; performance.now() < endMs; await sleep(SAMPLE_MS)) samples.push(sample(pid, performance.now() - startMs));
  return samples;
}

/**
 * Sends requests at their times of arrival, whether or not earlier ones are answered; one in thirty is always the same.
 */
async function load(port, { perSecond, startMs, endMs }) {
  const answered = [];
  const problems = [];
  const open = new Set();
  let known;
  const send = async (isProbe) => {
    const atMs = performance.now() - startMs;
    const { status, answers, ms } = await decide(port, isProbe ? PROBE : mixedRequest());
    answered.push({ atMs, ms });
    if (status !== 200) problems.push(`status ${status}`);
    if (!isProbe || status !== 200) return;
    known ??= answers;
    if (answers !== known) problems.push('an answer differs from the first to the same request');
  };
  for (let number = 0, dueMs = startMs; ; number += 1) {
    dueMs += (-Math.log(1 - random()) / perSecond) * 1000;
    if (dueMs >= endMs) break;
    await sleep(Math.max(0, dueMs - performance.now()));
    const sent = send(number % 30 === 0).catch((error) => problems.push(error.message));
    open.add(sent);
    void sent.finally(() => open.delete(sent));
  }
  await Promise.all(open);
  return { answered, problems };
}

/** Returns the value that `share` of the numbers do not exceed. */
function percentile(numbers, share) {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Returns the slope of a straight line through points by least squares. */
function slope(points) {
  const mean = (key) => points.reduce((sum, point) => sum + point[key], 0) / points.length;
  const [x, y] = [mean('x'), mean('y')];
  const product = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  return product / points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
}

function rowsOf({ answered }, samples) {
  const spanMs = (minutes * 60_000) / SPANS;
  return Array.from({ length: SPANS }, (_, span) => {
    const isIn = ({ atMs }) => Math.floor(atMs / spanMs) === span;
    const times = answered.filter(isIn).map(({ ms }) => ms);
    const seen = samples.filter(isIn);
    const range = (key) => {
      const all = seen.map((each) => each[key]);
      return `${Math.round(Math.min(...all))} to ${Math.round(Math.max(...all))}`;
    };
    const minute = (number) => Math.round((number * spanMs) / 60_000);
    const ms = (part) => Math.round(percentile(times, part));
    return [
      `${minute(span)} to ${minute(span + 1)}`,
      times.length,
      ms(0.5),
      ms(0.99),
      range('rssMiB'),
      range('descriptors'),
    ];
  });
}

function report({ capacity, perSecond, found, samples }) {
  const machine = `${process.platform} ${process.arch}, ${availableParallelism()} cores (${cpus()[0]?.model.trim()})`;
  const late = samples.filter(({ atMs }) => atMs > (minutes * 60_000) / SPANS);
  const perMinute = slope(late.map(({ atMs, rssMiB }) => ({ x: atMs / 60_000, y: rssMiB })));
  const rows = rowsOf(found, samples).map((row) => `| ${row.join(' | ')} |`);
  return [
    HEADING,
    '',
    `\`node scripts/soak.mjs\`, ${new Date().toISOString().slice(0, 10)}, ${machine}, Node ${process.version}: states of`,
    `${FEWEST_WORDS} to ${MOST_WORDS} words, each new, with 1 to ${MOST_QUESTIONS} questions. ${CAPACITY_CALLERS} callers who wait get ` +
      `${capacity.toFixed(1)} requests/s; for ${minutes} minutes`,
    `${perSecond.toFixed(1)} a second came, ${Math.round(share * 100)} % of that, whether or not others had been answered. ` +
      `${found.answered.length} requests were answered, ${found.problems.length} not as they should`,
    `be. From the second span on the resident memory changed by ${perMinute.toFixed(2)} MiB a minute (least squares).`,
    '',
    '| minutes | requests | p50, ms | p99, ms | resident, MiB | descriptors |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

/** Writes the section in the place of the page's old one, or before the results of the long tests. */
function write(section) {
  const [head, results] = readFileSync(PAGE, 'utf8').split(/^(?=## Latest run$)/m);
  const [before] = head.split(`${HEADING}\n`);
  writeFileSync(PAGE, `${before}${section}\n\n${results}`);
}

const cwd = mkdtempSync(join(tmpdir(), 'svc-soak-'));
const server = await startServer(cwd);
try {
  const capacity = await capacityOf(server.port);
  const perSecond = share * capacity;
  process.stdout.write(
    `soak: ${capacity.toFixed(1)} requests/s; ${perSecond.toFixed(1)} a second for ${minutes} minutes\n`,
  );
  const startMs = performance.now();
  const endMs = startMs + minutes * 60_000;
  const [found, samples] = await Promise.all([
    load(server.port, { perSecond, startMs, endMs }),
    sampleUntil(server.child.pid, startMs, endMs),
  ]);
  const section = report({ capacity, perSecond, found, samples });
  process.stdout.write(`${section}\n`);
  for (const problem of new Set(found.problems)) process.stdout.write(`soak: ${problem}\n`);
  write(section);
  if (found.problems.length > 0) process.exitCode = 1;
} finally {
  server.child.kill('SIGTERM');
  await once(server.child, 'close');
  agent.destroy();
  rmSync(cwd, { recursive: true, force: true });
}
