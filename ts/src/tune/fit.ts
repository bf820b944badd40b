/** The temperature and the bias that make a question's probabilities fit its labels best. */

/** A labelled answer of the model. */
export interface Example {
  /** The logits, one for each option, up to a constant. */
  readonly logits: readonly number[];
  /** The index of the right option. */
  readonly label: number;
  /** The state that the answer is about; examples with equal states are never on both sides of a split. */
  readonly state: string;
}

/** The calibration of logits: softmax of logits / `temperature` + `bias`. */
export interface Calibration {
  /** The temperature, greater than 0. */
  readonly temperature: number;
  /** The biases, one for each option; a missing one is 0. */
  readonly bias: readonly number[];
}

interface FitOptions {
  /** The starting temperature; a fit on few labels stays close to it. */
  readonly start: number;
  readonly hasBias: boolean;
}

const MAX_STEPS = 100;
/**
 * The fit ends when half of the decrease that the next step promises is below this: then no digit that is kept changes.
 */
const TOLERANCE = 1e-13;
const MAX_HALVINGS = 50;

/** Returns the probabilities of the options, which add up to 1. */
export function calibrated(logits: readonly number[], { temperature, bias }: Calibration): Float64Array {
  return softmax(Float64Array.from(logits, (logit, index) => logit / temperature + (bias[index] ?? 0)));
}

/**
 * Returns the calibration with the least mean negative log-likelihood, found by Newton's method on s = start /
 * temperature and the biases. That problem is convex (Guo et al., "On Calibration of Modern Neural Networks", 2017). A
 * penalty with the weight of one label, s - 1 - ln s and half the sum of the squared biases, keeps the calibration
 * finite where the labels alone do not, and the biases' mean at 0.
 */
export function fit(examples: readonly Example[], { start, hasBias }: FitOptions): Calibration {
  const scaled = examples.map(({ logits, label }) => ({ x: centered(logits, start), label }));
  const options = examples[0]?.logits.length ?? 0;
  const size = hasBias ? 1 + options : 1;
  let at = new Float64Array(size);
  at[0] = 1;
  for (let step = 0; step < MAX_STEPS; step++) {
    const { gradient, hessian } = derivatives(scaled, at);
    const direction = solve(hessian, gradient);
    const decrease = dot(gradient, direction);
    if (decrease / 2 < TOLERANCE) break;
    const next = lineSearch(scaled, at, { direction, decrease });
    if (next === undefined) break;
    at = next;
  }
  return { temperature: start / (at[0] ?? 1), bias: [...at.subarray(1)] };
}

interface Scaled {
  readonly x: Float64Array;
  readonly label: number;
}

/** Returns the logits over the temperature, shifted so that the highest is 0. */
function centered(logits: readonly number[], temperature: number): Float64Array {
  const highest = Math.max(...logits);
  return Float64Array.from(logits, (logit) => (logit - highest) / temperature);
}

function probabilitiesAt({ x }: Scaled, at: Float64Array): Float64Array {
  const [scale = 1] = at;
  return softmax(x.map((value, index) => scale * value + (at[index + 1] ?? 0)));
}

function lossAt(scaled: readonly Scaled[], at: Float64Array): number {
  const [scale = 1] = at;
  if (scale <= 0) return Number.POSITIVE_INFINITY;
  let loss = scale - 1 - Math.log(scale) + dot(at.subarray(1), at.subarray(1)) / 2;
  for (const example of scaled) loss -= Math.log(probabilitiesAt(example, at)[example.label] ?? 0);
  return loss / scaled.length;
}

/** Returns the first and second derivatives of the loss. Those of softmax are the mean and the covariance under it. */
function derivatives(scaled: readonly Scaled[], at: Float64Array) {
  const size = at.length;
  const gradient = at.slice();
  const hessian = Array.from({ length: size }, (_, row) => new Float64Array(size).fill(1, row, row + 1));
  const [scale = 1] = at;
  gradient[0] = 1 - 1 / scale;
  addTo(hessian, 0, 0, 1 / scale ** 2 - 1);
  for (const example of scaled) {
    const p = probabilitiesAt(example, at);
    const mean = dot(p, example.x);
    gradient[0] += mean - (example.x[example.label] ?? 0);
    for (const [i, probability] of p.entries()) {
      const away = (example.x[i] ?? 0) - mean;
      addTo(hessian, 0, 0, probability * away * away);
      if (size === 1) continue;
      gradient[i + 1] = (gradient[i + 1] ?? 0) + probability - (i === example.label ? 1 : 0);
      addTo(hessian, i + 1, 0, probability * away);
      addTo(hessian, i + 1, i + 1, probability);
      for (let j = 0; j <= i; j++) addTo(hessian, i + 1, j + 1, -probability * (p[j] ?? 0));
    }
  }
  for (const row of [gradient, ...hessian]) for (let i = 0; i < size; i++) row[i] = (row[i] ?? 0) / scaled.length;
  return { gradient, hessian };
}

function addTo(matrix: readonly Float64Array[], row: number, column: number, value: number): void {
  const cells = matrix[row];
  if (cells) cells[column] = (cells[column] ?? 0) + value;
}

/**
 * Returns the solution of a linear system by Cholesky's method. The matrix is symmetric and positive, and given by its
 * lower triangle.
 */
function solve(matrix: readonly Float64Array[], right: Float64Array): Float64Array {
  const lower: Float64Array[] = [];
  for (const [i, row] of matrix.entries()) {
    const found = new Float64Array(matrix.length);
    lower.push(found);
    for (const [j, other] of lower.entries()) {
      const rest = (row[j] ?? 0) - dot(found.subarray(0, j), other.subarray(0, j));
      found[j] = i === j ? Math.sqrt(rest) : rest / (other[j] ?? 1);
    }
  }
  const result = right.slice();
  for (const [i, row] of lower.entries()) {
    result[i] = ((result[i] ?? 0) - dot(row.subarray(0, i), result.subarray(0, i))) / (row[i] ?? 1);
  }
  for (let i = lower.length - 1; i >= 0; i--) {
    let rest = result[i] ?? 0;
    for (let j = i + 1; j < lower.length; j++) rest -= (lower[j]?.[i] ?? 0) * (result[j] ?? 0);
    result[i] = rest / (lower[i]?.[i] ?? 1);
  }
  return result;
}

/**
 * Returns the point after the first of the steps 1, 1/2, 1/4, … that lowers the loss enough (Armijo's rule); undefined
 * if none does.
 */
function lineSearch(
  scaled: readonly Scaled[],
  at: Float64Array,
  { direction, decrease }: { readonly direction: Float64Array; readonly decrease: number },
): Float64Array<ArrayBuffer> | undefined {
  const loss = lossAt(scaled, at);
  for (let halvings = 0, length = 1; halvings < MAX_HALVINGS; halvings++, length /= 2) {
    const next = Float64Array.from(at, (value, index) => value - length * (direction[index] ?? 0));
    if (lossAt(scaled, next) <= loss - 1e-4 * length * decrease) return next;
  }
  return undefined;
}

function softmax(values: Float64Array): Float64Array {
  const highest = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const powers = values.map((value) => Math.exp(value - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function dot(one: Float64Array, other: Float64Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index++) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum;
}
