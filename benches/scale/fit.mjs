/** Fits slopes in double logarithmic scale: cost grows as size to the power of the slope. */

/** Student's t for a 95 % interval, by degrees of freedom from 1 on. */
const STUDENT = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13];

/**
 * Fits a series from a size on. Every round measures all sizes and gives a slope of its own; the differences of the
 * slopes are the error.
 *
 * @returns the mean of the rounds' slopes, and its 95 % interval
 */
export function slope(points, from) {
  const tail = points.filter(({ size }) => size >= from);
  const rounds = points[0].rounds.map((_, round) =>
    leastSquares(tail.map(({ size, rounds }) => [Math.log(size), Math.log(rounds[round].ms)])),
  );
  const mean = average(rounds);
  const deviation = Math.sqrt(rounds.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (rounds.length - 1));
  const error = (STUDENT[Math.min(rounds.length - 1, STUDENT.length) - 1] * deviation) / Math.sqrt(rounds.length);
  return { slope: mean, low: mean - error, high: mean + error };
}

/** Returns the slope of the line through points `[x, y]`. */
function leastSquares(points) {
  const x = average(points.map(([x]) => x));
  const y = average(points.map(([, y]) => y));
  const sum = (value) => points.reduce((total, point) => total + value(point), 0);
  return sum((point) => (point[0] - x) * (point[1] - y)) / sum((point) => (point[0] - x) ** 2);
}

function average(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
