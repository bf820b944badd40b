/** Writes the results of the sweeps as Markdown. */
import { slope } from './fit.mjs';

/** Returns the fits of a sweep: for each series, the slope over all sizes and the slope from `tail` on. */
export function fits({ sizes, tail }, series) {
  return series.map(({ name, points }) => ({ name, all: slope(points, sizes[0]), tail: slope(points, tail) }));
}

/** Returns the series that grow faster than the bound by more than the measurement's error explains. */
export function tooSteep({ bound }, fitted) {
  return fitted.filter((series) => bound !== undefined && !(series.tail.low <= bound));
}

/** Returns the middle, the least and the greatest of a point's rounds. */
export function spread({ size, rounds }) {
  const sorted = rounds.map(({ ms }) => ms).toSorted((a, b) => a - b);
  return { size, ms: sorted[Math.floor(sorted.length / 2)], low: sorted[0], high: sorted.at(-1) };
}

/** Returns the section of a sweep for `README.md`: the picture, the slopes, the times. */
export function section(sweep, { machine, rounds, date, series }) {
  return [
    `### ${sweep.title}`,
    '',
    `${capital(sweep.about)}.`,
    '',
    `![${sweep.title}: milliseconds a request](${sweep.name}.svg)`,
    '',
    slopes(sweep, series),
    '',
    times(sweep, series),
    '',
    `${date}, ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; ${rounds} rounds; load average ${machine.load}.`,
    '',
  ].join('\n');
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function slopes(sweep, series) {
  const rows = fits(sweep, series).map(({ name, all, tail }) => [name, interval(all), `**${interval(tail)}**`]);
  return table(['series', 'slope', `slope from ${sweep.tail} on`], rows);
}

function interval({ slope, low, high }) {
  return `${slope.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}

function times(sweep, series) {
  const head = [sweep.unit, ...series.flatMap(({ name }) => (sweep.isLoad ? [name, 'p99', 'requests/s'] : [name]))];
  const rows = sweep.sizes.map((size, index) => {
    const points = series.map(({ points }) => points[index]);
    return [size, ...points.flatMap((point) => [ms(spread(point).ms), ...(sweep.isLoad ? load(point) : [])])];
  });
  return table(head, rows);
}

function load({ rounds }) {
  const middle = (key) => rounds.map((round) => round[key]).toSorted((a, b) => a - b)[Math.floor(rounds.length / 2)];
  return [ms(middle('p99Ms')), middle('perSecond').toFixed(0)];
}

const ms = (value) => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
