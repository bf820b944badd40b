/** Writes the results as Markdown: first the targets, then the tables. */

import { ratioText } from './section.mjs';
import { targets } from './targets.mjs';

/** The largest ratio between rounds of one series; a greater one shows that something else used the machine. */
const QUIET = 1.2;

/** Returns the tables of a run. */
export function report(results) {
  const { series, load, memory, mix, sweep } = results;
  return [
    describe(results),
    '### What it must show\n',
    targetTable(results),
    '### Ours\n',
    ownTable(series, load),
    'States in tokens, times in milliseconds. `floor` is (a), the bare graph, one row after the other; `side` is the bare graph',
    'with its rows side by side. Beside: what the server does beside the model; outside: what is outside of its `total`.',
    '',
    '### The others\n',
    peerTables(series, load, memory),
    ...(mix === undefined ? [] : ['### Half of the states seen before\n', mixLine(mix)]),
    '### Memory\n',
    memoryTable(memory),
    ...(sweep ?? []).map(sweepTable),
  ].join('\n');
}

function describe({ machine, options, series, date }) {
  const floors = series.filter(({ toFloor }) => toFloor !== undefined).map(({ toFloor }) => toFloor.max / toFloor.min);
  const worst = Math.max(1, ...floors);
  const { before, after } = machine.load;
  return [
    `${date}. ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}, ONNX Runtime`,
    `${machine.onnxRuntime}, ${machine.model}, ${options.threads} threads; at most ${options.rounds} rounds, ${options.seconds} s for each rate.`,
    `Load average (1 min) ${before.toFixed(2)} before and ${after.toFixed(2)} after; a ratio to the floor differed by up to`,
    `${worst.toFixed(2)} times between rounds: ${worst <= QUIET ? 'the machine was quiet' : '**the machine was noisy, take every number with care**'}.`,
    '',
  ].join('\n');
}

function targetTable(results) {
  const rows = targets(results).map(({ what, wanted, measured, isMet }) => {
    return [what, wanted, measured ?? 'not measured', isMet === undefined ? '' : isMet ? 'yes' : '**no**'];
  });
  return table(['what', 'wanted', 'measured', 'met'], rows);
}

function ownTable(series, load) {
  const rows = ['new', 'kept'].flatMap((key) =>
    ordered(series, key).map((one) => {
      const floor = find(series, one, key === 'kept' ? 'floor-kept' : 'floor');
      const side = find(series, one, key === 'kept' ? 'side-kept' : 'side');
      const many = find(load, one, key);
      return [
        `${one.stateTokens}, ${key}`,
        one.questions,
        three(one.ms),
        one.perSecond.toFixed(0),
        many?.perSecond.toFixed(0) ?? '',
        many === undefined ? '' : three(many.ms, 0),
        find(load, one, `${key}2`)?.perSecond.toFixed(0) ?? '',
        floor === undefined ? '' : number(floor.ms.p50),
        range(one.toFloor),
        side === undefined ? '' : number(side.ms.p50),
        range(one.toSide),
        ...['encode', 'run', 'beside', 'outside'].map((part) => number(one.serverMs[part])),
      ];
    }),
  );
  const times = ['p50, p95, p99', 'requests/s at 1', 'at 32', 'p50, p95, p99 at 32', 'at 32, `parallel` 2'];
  const bare = ['floor p50', 'of the floor', 'side p50', 'of side'];
  return table(['state', 'questions', ...times, ...bare, 'encode', 'run', 'beside', 'outside'], rows);
}

/** Returns how much longer the peers take, how many fewer requests they answer, and their own figures. */
function peerTables(series, load, memory) {
  const keys = ['b1', 'b2', 'c1', 'c2', 'd'].filter((key) => series.some((one) => one.key === key));
  if (keys.length === 0) return 'Not measured.\n';
  const hasTwo = load.some(({ key }) => key === 'new2');
  const rows = ordered(series, 'new').map((one) => [
    one.stateTokens,
    one.questions,
    ...keys.map((key) => times(find(series, one, key)?.toNew?.median)),
    ...keys.map((key) => times(find(load, one, key)?.ofNew?.median)),
    ...(hasTwo ? keys.map((key) => times(quotient(find(load, one, 'new2'), find(load, one, key)))) : []),
  ]);
  const head = [
    ...keys.map((key) => `${key} time / ours`),
    ...keys.map((key) => `ours / ${key} requests/s`),
    ...(hasTwo ? keys.map((key) => `ours, \`parallel\` 2, / ${key}`) : []),
  ];
  const figures = keys.flatMap((key) =>
    ordered(series, key).map((one) => {
      const many = find(load, one, key);
      const manyTimes = many === undefined ? '' : three(many.ms, 0);
      return [
        key,
        one.stateTokens,
        one.questions,
        one.samples,
        three(one.ms),
        number(one.perSecond),
        many === undefined ? '' : number(many.perSecond),
        manyTimes,
      ];
    }),
  );
  const labels = memory.filter(({ key }) => keys.includes(key)).map(({ label }) => label);
  const own = [
    'peer',
    'state',
    'questions',
    'samples',
    'p50, p95, p99',
    'requests/s at 1',
    'at 32',
    'p50, p95, p99 at 32',
  ];
  return [
    `${labels.join(', ')}; new states, 32 connections for requests/s.\n`,
    table(['state', 'questions', ...head], rows),
    '<details><summary>Their own figures</summary>\n',
    table(own, figures),
    '</details>\n',
  ].join('\n');
}

function mixLine({ cachedPerSecond, uncachedPerSecond, ratio }) {
  const rates = `${cachedPerSecond.toFixed(0)} requests/s with the cache and ${uncachedPerSecond.toFixed(0)} without`;
  return `One question on 164 tokens, 32 connections: ${rates}: ${range(ratio)} times.\n`;
}

function memoryTable(memory) {
  const mebibytes = (bytes) => (bytes === undefined ? '' : (bytes / 2 ** 20).toFixed(0));
  const rows = memory.map(({ label, startBytes, endBytes }) => [label, mebibytes(startBytes), mebibytes(endBytes)]);
  return table(['resident, MiB', 'after the start', 'after all of this'], rows);
}

function sweepTable({ stateTokens, questions, engineMs, ways }) {
  const rows = ways
    .toSorted((a, b) => a.ms.p50 - b.ms.p50)
    .map(({ key, ms, engineRatio }) => [key, three(ms), range(engineRatio)]);
  const title = `${questions} question${questions > 1 ? 's' : ''} on a new state of ${stateTokens} tokens`;
  return [
    `### Sweep of settings: ${title}\n`,
    `The engine's run takes ${three(engineMs)} ms.\n`,
    table(['bare graph', 'p50, p95, p99', "the engine's run / this"], rows),
  ].join('\n');
}

const find = (list, { stateTokens, questions }, key) =>
  list.find((one) => one.key === key && one.stateTokens === stateTokens && one.questions === questions);

/** Returns the ratio of the requests per second of two series, where both were measured. */
const quotient = (one, other) => (one && other ? one.perSecond / other.perSecond : undefined);

const ordered = (series, key) =>
  series
    .filter((one) => one.key === key)
    .toSorted((a, b) => a.stateTokens - b.stateTokens || a.questions - b.questions);

const number = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

const times = (value) => (value === undefined ? '' : `**${number(value)}**`);

const range = (ratio) => (ratio === undefined ? '' : ratioText(ratio));

const three = ({ p50, p95, p99 }, digits) =>
  [p50, p95, p99].map((value) => (digits === undefined ? number(value) : value.toFixed(digits))).join(', ');

function table(head, rows) {
  const lines = [head, head.map(() => '---'), ...rows];
  return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}
