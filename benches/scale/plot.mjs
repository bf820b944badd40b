/** Draws a sweep as an SVG that is readable on a light page and on a dark one. */
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';

/** Colours that people with any colour vision can tell apart, on white and on near black (Okabe and Ito). */
const SERIES = ['--first', '--second', '--third', '--fourth', '--fifth'];
const STYLE = `
  svg { color: #1f2328; background: #fff; --first: #0072b2; --second: #d55e00; --third: #007a5a; --fourth: #a6487f; --fifth: #8a6d00; }
  @media (prefers-color-scheme: dark) {
    svg { color: #e6edf3; background: #0d1117; --first: #56b4e9; --second: #ff8c42; --third: #2fc99a; --fourth: #e39ac4; --fifth: #f0e442; }
  }`;

/** Returns the picture of a sweep's series `{name, points: [{size, ms, low, high}]}`. */
export function draw({ title, unit, series }) {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const svg = Plot.plot({
    document,
    ...{
      width: 760,
      height: 420,
      marginLeft: 56,
      marginRight: 24,
      marginTop: 24 + 18 * series.length,
      marginBottom: 44,
    },
    style: { fontSize: '13px' },
    x: { type: 'log', label: `${unit} →`, labelAnchor: 'right' },
    y: { type: 'log', label: '↑ milliseconds' },
    marks: [...axes(series), ...series.flatMap(marks), ...series.map(key)],
  });
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  svg.setAttribute('role', 'img');
  svg.setAttribute('aria-label', `${title}: milliseconds a request`);
  const style = document.createElement('style');
  style.textContent = STYLE;
  svg.append(style);
  return `${svg.outerHTML}\n`;
}

/** Returns axes that name every size, and one, two and five times each power of ten. */
function axes(series) {
  const sizes = series[0].points.map(({ size }) => size);
  const times = series.flatMap(({ points }) => points.flatMap(({ low, high }) => [low, high]));
  const [least, greatest] = [Math.min(...times), Math.max(...times)];
  const steps = [0.1, 1, 10, 100, 1000, 10_000, 100_000].flatMap((power) => [power, 2 * power, 5 * power]);
  const ticks = steps.filter((step) => step >= least && step <= greatest);
  const text = (value) => value.toLocaleString('en');
  return [
    Plot.gridX(sizes),
    Plot.gridY(ticks),
    Plot.axisX(sizes, { text, tickSize: 0 }),
    Plot.axisY(ticks, { text, tickSize: 0 }),
  ];
}

function marks({ points }, index) {
  const colour = `var(${SERIES[index]})`;
  const last = points.at(-1);
  // This line is proportional to the size and goes through the last point.
  const linear = points.map(({ size }) => ({ size, ms: (last.ms * size) / last.size }));
  const least = Math.min(...points.map(({ ms }) => ms));
  return [
    Plot.lineY(
      linear.filter(({ ms }) => ms >= least * 0.7),
      { x: 'size', y: 'ms', stroke: colour, strokeDasharray: '2 5', strokeOpacity: 0.7 },
    ),
    Plot.ruleX(points, { x: 'size', y1: 'low', y2: 'high', stroke: colour, strokeWidth: 3, strokeOpacity: 0.45 }),
    Plot.lineY(points, { x: 'size', y: 'ms', stroke: colour, strokeWidth: 2, marker: 'dot' }),
  ];
}

/** Returns a series' name in its colour above the picture, since names are too long to stand next to the lines. */
function key({ name }, index) {
  return Plot.text([`${name} ●`], {
    frameAnchor: 'top-right',
    textAnchor: 'end',
    dy: -18 * index - 6,
    lineAnchor: 'bottom',
    fill: `var(${SERIES[index]})`,
    fontWeight: 600,
  });
}
