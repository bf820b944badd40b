/**
 * `node benches/capacity.mjs`: measures the capacity of one core, on which the figures of `docs/scaling.md` are based.
 * The whole server runs with one thread and is bound to one core; the client has another core. Writes its tables into
 * README.md and docs/scaling.md. Needs Linux, and a machine that does nothing else.
 */
import { resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readInputs, withNewState } from './inputs.mjs';
import { percentile, spread, underLoad } from './measure.mjs';
import { circumstances, table, writeSection } from './section.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { requestBytes, residentBytes, start } = await import('./server.mjs');

const CONNECTIONS = 8;
const STATES = [20, 164, 912];
const QUESTIONS = [1, 8];
const EXAMPLES = [
  { decisions: 1000, questions: 1, stateTokens: 164, kept: 0 },
  { decisions: 1000, questions: 8, stateTokens: 164, kept: 0 },
  { decisions: 10_000, questions: 8, stateTokens: 164, kept: 0.5 },
  { decisions: 100_000, questions: 8, stateTokens: 20, kept: 0 },
  { decisions: 100_000, questions: 8, stateTokens: 164, kept: 0 },
  { decisions: 100_000, questions: 8, stateTokens: 164, kept: 0.8 },
  { decisions: 100_000, questions: 1, stateTokens: 164, kept: 0.8 },
];
const FLAGS = ['--listen', '127.0.0.1:0', '--threads', '1'];

const { values: flags } = parseArgs({
  options: { turns: { type: 'string', default: '3' }, seconds: { type: 'string', default: '3' } },
});
const [turns, seconds] = [Number(flags.turns), Number(flags.seconds)];

function startBound() {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_'));
  return start({
    name: 'the server',
    command: ['taskset', '-c', '0', process.execPath, resolve('bin/svc.js'), 'serve', ...FLAGS],
    env: Object.fromEntries(inherited),
    find: (log) => /listening on (http:\/\/[^"\s]+)/.exec(log)?.[1],
    ready: '/readyz',
  });
}

/** Returns a function that gives the bytes of the next request: always the same one, or one about a new state. */
function requests(server, input, isKept) {
  const same = requestBytes(server.origin, input.body);
  return isKept ? () => same : () => requestBytes(server.origin, withNewState(input));
}

function write(measured, memory) {
  const note = `Medians of ${turns} turns of ${seconds} s, least and greatest, ${CONNECTIONS} connections. After all of it the process had ${memory} MiB.`;
  const names = ['tokens of the state', 'questions', 'state', 'requests/s', 'decisions/s', 'p50, ms'];
  const rows = measured.map(({ stateTokens, questions, isKept, rates, times }) => {
    const rate = `${rates.median.toFixed(1)} (${rates.min.toFixed(1)} to ${rates.max.toFixed(1)})`;
    const decisions = rounded(rates.median * questions);
    return [stateTokens, questions, isKept ? 'kept' : 'new', rate, decisions, percentile(times, 50).toFixed(1)];
  });
  const text = [table([names, ...rows]), note, circumstances()].join('\n\n');
  process.stdout.write(`${text}\n`);
  writeSection('benches/README.md', 'capacity', text);
  writeSection('docs/scaling.md', 'capacity', [capacityTable(measured), circumstances()].join('\n\n'));
  writeSection('docs/scaling.md', 'example', exampleTable(measured));
}

/** Returns a number as text with about three digits. */
const rounded = (number) => number.toFixed(number < 100 ? 1 : 0);

/** The share of a core's measured capacity that the tables count with. */
const USED = 0.6;

function capacityTable(measured) {
  const names = [
    'tokens of the state',
    'questions',
    'state',
    'requests/s',
    'decisions/s',
    'core hours a million decisions',
    'cores for 100,000 decisions/s',
  ];
  const rows = measured.map(({ stateTokens, questions, isKept, rates }) => {
    const decisions = rates.median * questions;
    const hours = (1e6 / (decisions * USED * 3600)).toFixed(2);
    const cells = [rates.median.toFixed(1), rounded(decisions), hours, Math.ceil(1e5 / (decisions * USED))];
    return [stateTokens, questions, isKept ? 'kept' : 'new', ...cells];
  });
  return table([names, ...rows]);
}

/** The price of a core for an hour in the example; it is made up. */
const EXAMPLE_PRICE = 0.04;
const HOURS_PER_MONTH = 730;

function exampleTable(measured) {
  const perSecond = (stateTokens, questions, isKept) =>
    measured.find((one) => one.stateTokens === stateTokens && one.questions === questions && one.isKept === isKept)
      .rates.median;
  const names = ['decisions/s', 'questions', 'tokens of the state', 'kept', 'requests/s', 'cores', 'a month'];
  const rows = EXAMPLES.map(({ decisions, questions, stateTokens, kept }) => {
    const [onKept, onNew] = [true, false].map((isKept) => perSecond(stateTokens, questions, isKept));
    const requests = decisions / questions;
    const cores = Math.ceil((requests * (kept / onKept + (1 - kept) / onNew)) / USED);
    const cost = Math.round(cores * EXAMPLE_PRICE * HOURS_PER_MONTH).toLocaleString('en');
    return [
      decisions.toLocaleString('en'),
      questions,
      stateTokens,
      `${100 * kept} %`,
      requests.toLocaleString('en'),
      cores,
      cost,
    ];
  });
  const note = `An example; its price, ${EXAMPLE_PRICE} for a core and hour, and its loads are invented.`;
  return [note, table([names, ...rows])].join('\n\n');
}

const server = await startBound();
try {
  const inputs = readInputs().filter(
    ({ stateTokens, questions }) => STATES.includes(stateTokens) && QUESTIONS.includes(questions),
  );
  const cases = inputs.flatMap((input) => [false, true].map((isKept) => ({ input, isKept, rates: [], times: [] })));
  for (let turn = 0; turn < turns; turn += 1) {
    for (const { input, isKept, rates, times } of turn % 2 === 0 ? cases : cases.toReversed()) {
      const next = requests(server, input, isKept);
      const measured = await underLoad({ server, connections: CONNECTIONS, seconds, next });
      rates.push(measured.perSecond);
      times.push(...measured.times);
    }
  }
  const memory = Math.round(residentBytes(server.pid) / 2 ** 20);
  const measured = cases.map(({ input, isKept, rates, times }) => ({ ...input, isKept, rates: spread(rates), times }));
  write(measured, memory);
} finally {
  await server.stop();
}
