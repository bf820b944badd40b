/** The beginning of the page of results: three sentences, and a picture of the requests per second of all servers. */
import { STATE_TOKENS } from './targets.mjs';

/** The states in the picture, in tokens; the other servers were not measured on longer ones. */
const PICTURED = [20, 164, 912];
/** The series in the picture: their keys, names and kinds. */
const BARS = [
  ['kept', 'ours, kept state', 'own'],
  ['new2', 'ours, new state, parallel 2', 'own'],
  ['new', 'ours, new state', 'own'],
  ['c1', 'mosec, int8', 'other'],
  ['b2', 'FastAPI, int8', 'other'],
  ['b1', 'FastAPI, fp32', 'other'],
  ['c2', 'infinity, fp32', 'other'],
];
/** The servers of others that run the same int8 weights on the same questions. */
const SAME_WORK = new Map([
  ['b2', 'FastAPI with onnxruntime'],
  ['c1', 'mosec'],
]);

const WIDTH = 760;
const [NAME_WIDTH, BAR_WIDTH] = [200, 460];
const [ROW, BAR, TITLE] = [20, 14, 30];

/** Returns the series `key` of a list for one question about a state of so many tokens. */
function find(list, key, stateTokens = STATE_TOKENS) {
  return list.find((one) => one.key === key && one.questions === 1 && one.stateTokens === stateTokens);
}

/** Returns the three sentences, as Markdown; empty where a number for them was not measured. */
export function sentences({ series, load, machine, date }) {
  const [fresh, kept] = [find(series, 'new'), find(series, 'kept')];
  const [many, manyKept] = [find(load, 'new'), find(load, 'kept')];
  const others = [...SAME_WORK].map(([key, name]) => ({ name, rate: find(load, key)?.perSecond ?? 0 }));
  const best = others.toSorted((a, b) => b.rate - a.rate)[0];
  if ([fresh, kept, many, manyKept].includes(undefined) || best.rate === 0) return '';
  const ms = ({ ms: { p50 } }) => `${p50.toFixed(1)} ms`;
  const rate = ({ perSecond }) => perSecond.toFixed(0);
  const two = find(load, 'new2');
  const withTwo = two === undefined ? '' : `, or ${rate(two)} with \`parallel\` 2`;
  return [
    `One question about a text of ${STATE_TOKENS} tokens is answered in ${ms(fresh)} (p50), and in ${ms(kept)} when the text was asked about before.`,
    `With 32 callers, ${machine.cores} cores answer ${rate(many)} such requests per second${withTwo}, and ${rate(manyKept)} about texts that were asked about before; the fastest other server with the same weights (${best.name}) answers ${best.rate.toFixed(0)}.`,
    `This was measured on ${date} on ${machine.cpu}; everything below says how, and what else was measured.`,
  ].join('\n');
}

/** Returns the picture, as SVG: a group of bars for each length of the state, each group on a scale of its own. */
export function picture({ load }) {
  const groups = PICTURED.map((tokens) => group(load, tokens)).filter(({ bars }) => bars.length > 0);
  let top = 10;
  const drawn = groups.map(({ tokens, bars }) => {
    const most = Math.max(...bars.map(({ rate }) => rate));
    const title = `<text class="title" x="0" y="${top + 14}">one question about ${tokens} tokens</text>`;
    const rows = bars.map((bar, index) => barRow(bar, top + TITLE + index * ROW, most));
    top += TITLE + bars.length * ROW + 16;
    return [title, ...rows].join('\n');
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" width="${WIDTH}" height="${top}" role="img">
<title>Requests per second with 32 callers</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.own { fill: #1f6feb }
.other { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .own { fill: #58a6ff } .other { fill: #6e7681 } }
</style>
${drawn.join('\n')}
</svg>
`;
}

function group(load, tokens) {
  const bars = BARS.flatMap(([key, name, kind]) => {
    const rate = find(load, key, tokens)?.perSecond;
    return rate === undefined ? [] : [{ name, kind, rate }];
  });
  return { tokens, bars };
}

function barRow({ name, kind, rate }, top, most) {
  const width = Math.max(1, Math.round((rate / most) * BAR_WIDTH));
  return [
    `<text x="${NAME_WIDTH - 8}" y="${top + 11}" text-anchor="end">${name}</text>`,
    `<rect class="${kind}" x="${NAME_WIDTH}" y="${top}" width="${width}" height="${BAR}" rx="2"/>`,
    `<text x="${NAME_WIDTH + width + 6}" y="${top + 11}">${rate.toFixed(0)}/s</text>`,
  ].join('');
}
