/**
 * The tests that take too long for every change: a million damaged bodies, damaged model folders, fuzzing that looks
 * for new branches, exits in the middle of runs, runs over files that are killed, models that are swapped under load,
 * and a mixed load with callers that hang up, under which the memory must stay flat. Writes the results into
 * docs/test-long.md.
 *
 *     npm run test:long -- [--bodies 1000000] [--damaged 1000] [--fuzz-minutes 10] [--exits 120] [--kills 10] [--rows 20000]
 *                          [--swaps 1000] [--minutes 10]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ONNX_RUNTIME } from './platform.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const { values } = parseArgs({
  options: {
    bodies: { type: 'string', default: '1000000' },
    damaged: { type: 'string', default: '1000' },
    'fuzz-minutes': { type: 'string', default: '10' },
    exits: { type: 'string', default: '120' },
    kills: { type: 'string', default: '10' },
    rows: { type: 'string', default: '20000' },
    swaps: { type: 'string', default: '1000' },
    minutes: { type: 'string', default: '10' },
  },
});
const [bodies, exits, minutes] = [values.bodies, values.exits, values.minutes].map(Number);
const [damaged, fuzzMinutes] = [values.damaged, values['fuzz-minutes']].map(Number);
const [kills, fileRows, swaps] = [values.kills, values.rows, values.swaps].map(Number);
const { differentRequest, manyQuestions } = await import('../dist/test/addon/requests.js');
const { killedRun } = await import('../dist/test/file-run/killed-run.js');
const { outputFiles } = await import('../dist/test/file-run/run-files.js');
const { growthMiB, MAX_GROWTH_MIB, swapUnderLoad } = await import('../dist/test/real/swapped-load.js');

const PAGE = join('docs', 'test-long.md');
/** The programs that end themselves: while a model loads and runs, and while models are swapped. */
const EXIT_PROGRAMS = ['exit-at.js', 'exit-in-swap.js'].map((name) => join('dist', 'test', 'addon', 'programs', name));
const EXIT_STATUS = 7;
const CALLERS = 32;

const say = (line) => process.stdout.write(`long: ${line}\n`);
const random = (below) => Math.floor(Math.random() * below);

/** Runs one of the engine's tests on models with more cases than its default number. */
async function engineTest(test, more) {
  const program = ['--release', '--locked', '-p', 'svc-engine', '--test', 'models'];
  const args = ['test', ...program, '--', '--exact', '--nocapture', test];
  const env = { ...process.env, ...more, SVC_RUNTIME: resolve(ONNX_RUNTIME) };
  const child = spawn('cargo', args, { stdio: ['ignore', 'pipe', 'inherit'], env });
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { isWell: child.exitCode === 0 && /^test result: ok\. 1 passed/m.test(output), output };
}

async function fuzzBodies() {
  const test = 'properties::bytes_from_anywhere_are_answered_or_refused_as_the_callers_fault';
  const { isWell, output } = await engineTest(test, { SVC_FUZZ_BODIES: String(bodies) });
  return { isWell, found: isWell ? 'each answered, or refused as the fault of its caller' : output.trim().slice(-500) };
}

async function damageFolders() {
  const test = 'damaged::a_damaged_file_is_refused_with_one_line_or_answers';
  const { isWell, output } = await engineTest(test, { SVC_DAMAGED: String(damaged) });
  const counts = output.match(/^\S+: \d+ refused, \d+ answered$/gm) ?? [];
  return { isWell, found: isWell ? counts.join('; ') : output.trim().slice(-500) };
}

const FUZZ_TARGETS = ['systemone', 'decisions', 'batch', 'config', 'onnx'];
const FUZZ = join('crates', 'engine', 'fuzz');

/** Fuzzes a target from the repository's inputs and those that earlier runs found, and returns libFuzzer's report. */
async function fuzzTarget(target) {
  const [corpus, found] = ['fuzz-corpus', 'fuzz-found'].map((name) => join('target', name, target));
  for (const folder of [corpus, found]) mkdirSync(folder, { recursive: true });
  const build = ['--fuzz-dir', FUZZ, '--target-dir', join('target', 'fuzz'), '--sanitizer', 'none'];
  const inputs = [corpus, join(FUZZ, 'seeds', target)].map((folder) => resolve(folder));
  const maxBytes = target === 'onnx' ? 20_000 : 4_096;
  const fuzzer = [
    `-max_total_time=${Math.round(fuzzMinutes * 60)}`,
    `-max_len=${maxBytes}`,
    '-timeout=20',
    '-rss_limit_mb=2048',
    '-print_final_stats=1',
    `-artifact_prefix=${resolve(found)}/`,
  ];
  const args = ['+nightly', 'fuzz', 'run', ...build, target, ...inputs, '--', ...fuzzer];
  const child = spawn('cargo', args, { stdio: ['ignore', 'inherit', 'pipe'] });
  const [said] = await Promise.all([text(child.stderr), once(child, 'close')]);
  const count = /^stat::number_of_executed_units: *(\d+)/m.exec(said)?.[1];
  return { isWell: child.exitCode === 0, count: Number(count ?? 0), said };
}

/** Fuzzes all targets, which needs a nightly compiler and `cargo install cargo-fuzz`. */
async function fuzz() {
  const counts = [];
  for (const target of FUZZ_TARGETS) {
    const { isWell, count, said } = await fuzzTarget(target);
    if (!isWell) return { isWell, found: `${target}: ${said.trim().slice(-500)}` };
    counts.push(`${target} ${count.toLocaleString('en')}`);
  }
  return { isWell: true, found: `nothing in as many runs: ${counts.join(', ')}` };
}

/**
 * Runs a program that ends itself after `delayMs`; returns the problem, or undefined if it ended silently as it should.
 */
async function exitAt(program, delayMs) {
  const child = spawn(process.execPath, [program, String(delayMs), String(EXIT_STATUS)], { timeout: 60_000 });
  const [stderr, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  const isWell = code === EXIT_STATUS && stderr === '';
  return isWell ? undefined : `${program} after ${delayMs} ms: ${signal ?? code} ${stderr}`;
}

async function exitInTheMiddle() {
  const problems = [];
  for (let count = 0; count < exits; count += 2) {
    problems.push(...(await Promise.all(EXIT_PROGRAMS.map((program) => exitAt(program, random(1500))))));
  }
  const bad = problems.filter((problem) => problem !== undefined);
  return {
    isWell: bad.length === 0,
    found: bad.length === 0 ? 'each with its own exit code, no crash' : bad.join('; '),
  };
}

/** Runs a file in a folder that is removed afterwards, and returns the end of the run and its output. */
async function runOf(name, most) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-long-'));
  try {
    const killed = await killedRun({ folder, name, rows: fileRows, kills: most });
    return { ...killed, output: JSON.stringify(outputFiles(folder)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Kills runs of each format; a run that is done before it was killed often enough is begun again. */
async function killRuns() {
  const problems = [];
  const counts = [];
  for (const name of ['rows.jsonl', 'rows.csv', 'rows.parquet']) {
    const whole = await runOf(name, 0);
    if (!whole.end.startsWith('0 ')) problems.push(whole.end);
    let count = 0;
    while (count < kills && problems.length === 0) {
      const killed = await runOf(name, kills - count);
      count += killed.kills;
      if (!killed.end.startsWith('0 ')) problems.push(killed.end);
      if (killed.output !== whole.output) problems.push(`${name} is not what it is without a kill`);
    }
    counts.push(`${name}: ${count} kills`);
  }
  const found = `${counts.join(', ')}; each output byte for byte that of a run without one`;
  return { isWell: problems.length === 0, found: problems.length === 0 ? found : problems.join('; ') };
}

async function swapModels() {
  const endings = [];
  try {
    const { answers, batches, rssMiB } = await swapUnderLoad({ after: (end) => endings.push(end) }, swaps);
    const found = `${answers} answers and ${batches} batches, each of one model; MiB resident, ${rssMiB.length} samples: ${rssMiB.join(' ')}`;
    return { isWell: growthMiB(rssMiB) < MAX_GROWTH_MIB, found };
  } catch (error) {
    return { isWell: false, found: error.message };
  } finally {
    for (const end of endings) await end();
  }
}

async function startServer(cwd) {
  const args = [resolve('bin', 'svc.js'), 'serve', '--listen', '127.0.0.1:0', '--device', 'cpu'];
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (part) => {
    log += part;
  });
  while (!/model .+ loaded/.test(log)) await sleep(20);
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(log)[1]);
  /** Returns the lines on stderr that are not of the log, such as the last message of a crash. */
  const noise = () => log.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":'));
  return { child, port, noise };
}

/** Sends one request, and returns its status and body, or the status 0 if the caller hung up. */
async function send({ port, agent, body, hangUpMs }) {
  const req = request({ host: '127.0.0.1', port, agent, method: 'POST', path: '/v1/systemone' });
  const hangUp = hangUpMs === undefined ? undefined : setTimeout(() => req.destroy(), hangUpMs);
  try {
    req.end(body);
    const [res] = await once(req, 'response');
    return { status: res.statusCode, body: (await buffer(res)).toString('utf8') };
  } catch (error) {
    if (hangUpMs === undefined) throw error;
    return { status: 0 };
  } finally {
    clearTimeout(hangUp);
  }
}

/**
 * Returns a request of the mix: most are short, some have many questions or a long state, some are damaged, some are
 * given up.
 */
function mixed(number) {
  const kind = random(20);
  if (kind === 0) return { body: manyQuestions(100 + random(100)) };
  if (kind === 1) return { body: manyQuestions(3, 'The order was late and the box was open. '.repeat(random(400))) };
  if (kind === 2) return { body: '{"state":"s","questions":{"q":{"type":"choice"}}}', expected: 400 };
  if (kind <= 5) return { body: manyQuestions(1 + random(60)), hangUpMs: random(300) };
  return { body: differentRequest(number % 1000), isKnown: true };
}

/**
 * Returns the answers without the usage, which differs every time; those to `differentRequest(n)` must never change.
 */
const answersOf = (body) => body.slice(0, body.lastIndexOf(',"usage":'));

async function residentMiB(pid) {
  const child = spawn('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Math.round(Number(await text(child.stdout)) / 1024);
}

async function mixedLoad() {
  const cwd = mkdtempSync(join(tmpdir(), 'svc-long-'));
  const server = await startServer(cwd);
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  const statuses = new Map();
  const [known, problems, rssMiB] = [new Map(), [], []];
  const endMs = performance.now() + minutes * 60_000;
  let number = 0;
  const caller = async () => {
    while (performance.now() < endMs && problems.length < 10) {
      const at = number++;
      const { body, hangUpMs, expected = 200, isKnown } = mixed(at);
      const got = await send({ port: server.port, agent, body, hangUpMs }).catch((error) => ({
        status: error.message,
      }));
      statuses.set(got.status, (statuses.get(got.status) ?? 0) + 1);
      if (got.status !== expected && !(hangUpMs !== undefined && got.status === 0)) problems.push(`${got.status}`);
      if (!isKnown || got.status !== 200) continue;
      const before = known.get(at % 1000) ?? answersOf(got.body);
      known.set(at % 1000, before);
      if (answersOf(got.body) !== before) problems.push(`request ${at % 1000} got another answer`);
    }
  };
  const sample = async () => {
    while (performance.now() < endMs && problems.length < 10) {
      rssMiB.push(await residentMiB(server.child.pid));
      await sleep((minutes * 60_000) / 20);
    }
  };
  await Promise.all([sample(), ...Array.from({ length: CALLERS }, caller)]);
  server.child.kill('SIGTERM');
  const [code] = await once(server.child, 'close');
  if (code !== 0) problems.push(`exit code ${code} on SIGTERM`);
  problems.push(...server.noise());
  rmSync(cwd, { recursive: true, force: true });
  agent.destroy();
  // The first quarter is warm-up, in which the state cache fills and the allocator's memory grows to its size.
  const steady = rssMiB.slice(Math.ceil(rssMiB.length / 4));
  const growth = Math.max(...steady) - Math.min(...steady.slice(0, 3));
  if (growth > 150) problems.push(`memory grew by ${growth} MiB`);
  const counts = [...statuses].map(([status, count]) => `${count} × ${status || 'hung up'}`).join(', ');
  const found = `${counts}; MiB resident, ${rssMiB.length} samples: ${rssMiB.join(' ')}`;
  return { isWell: problems.length === 0, found: [found, ...problems].join('; ') };
}

const PARTS = [
  { name: `${bodies.toLocaleString('en')} damaged bodies`, work: fuzzBodies },
  { name: `${damaged.toLocaleString('en')} damaged tokenizers and graphs of each layout`, work: damageFolders },
  { name: `${fuzzMinutes} minutes of fuzzing of each parser`, work: fuzz },
  { name: `${exits} exits while loading, running and swapping models`, work: exitInTheMiddle },
  { name: `${kills} kills of svc batch over ${fileRows.toLocaleString('en')} rows, each format`, work: killRuns },
  { name: `${swaps.toLocaleString('en')} swaps between two models under load`, work: swapModels },
  { name: `${minutes} minutes of mixed load, ${CALLERS} callers, some hanging up`, work: mixedLoad },
];

/** Writes the results into the page, and keeps its text before the latest run. */
function writePage(rows) {
  const machine = `${process.platform} ${process.arch}, ${availableParallelism()} cores (${cpus()[0]?.model.trim()})`;
  const [head] = readFileSync(PAGE, 'utf8').split(/^## Latest run$/m);
  const date = new Date().toISOString().slice(0, 10);
  const table = rows.map((row) => `| ${row.map((cell) => String(cell).replaceAll(/[|\n]/g, ' ')).join(' | ')} |`);
  const lines = [
    `${date}, ${machine}, Node ${process.version}.`,
    '',
    '| part | took | result | found |',
    '|---|---|---|---|',
  ];
  writeFileSync(PAGE, `${head}## Latest run\n\n${[...lines, ...table].join('\n')}\n`);
}

const rows = [];
for (const { name, work } of PARTS) {
  say(name);
  const startMs = performance.now();
  const { isWell, found } = await work();
  rows.push([name, `${Math.round((performance.now() - startMs) / 1000)} s`, isWell ? 'passed' : 'failed', found]);
  say(`${isWell ? 'passed' : 'failed'}: ${found}`);
}
writePage(rows);
const passed = rows.filter(([, , result]) => result === 'passed').length;
process.stdout.write(`${passed} passed, ${rows.length - passed} failed\n`);
process.exitCode = passed === rows.length ? 0 : 1;
