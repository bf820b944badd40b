/** The quality of probabilities, measured by labels. */

/** The probabilities of an answer, and the right option. */
export interface Judged {
  /** The probabilities, one for each option. */
  readonly probabilities: ArrayLike<number>;
  /** The index of the right option. */
  readonly label: number;
}

export interface Measures {
  /** The share of answers whose most probable option is right. */
  readonly accuracy: number;
  /** The mean of minus the natural logarithm of the right option's probability; lower is better. */
  readonly negative_log_likelihood: number;
  /**
   * Expected calibration error: the mean distance, over bins of answers, between the top option's probability and its
   * share of right answers; lower is better.
   */
  readonly ece: number;
  /** The mean over answers of the squared distance from certainty of the right option, 0 to 2; lower is better. */
  readonly brier: number;
}

/** The number of bins of the expected calibration error, each with the same number of answers. */
const BINS = 15;

/** The least probability that enters a logarithm, since 0 has none. */
const LEAST_PROBABILITY = 1e-9;

/** Returns the measures of some answers. */
export function measures(judged: readonly Judged[]): Measures {
  const tops = judged.map((one) => {
    const top = topOf(one.probabilities);
    return { probability: one.probabilities[top] ?? 0, right: top === one.label ? 1 : 0 };
  });
  return {
    accuracy: mean(tops.map(({ right }) => right)),
    negative_log_likelihood: mean(judged.map(logLoss)),
    ece: calibrationError(tops),
    brier: mean(judged.map(brier)),
  };
}

/** Returns minus the natural logarithm of the right option's probability. */
export function logLoss({ probabilities, label }: Judged): number {
  return -Math.log(Math.max(probabilities[label] ?? 0, LEAST_PROBABILITY));
}

function brier({ probabilities, label }: Judged): number {
  return Array.from(probabilities, (p, index) => (p - (index === label ? 1 : 0)) ** 2).reduce((a, b) => a + b, 0);
}

function topOf(values: ArrayLike<number>): number {
  return Array.from(values).reduce((top, value, index, all) => (value > (all[top] ?? 0) ? index : top), 0);
}

interface Top {
  readonly probability: number;
  readonly right: number;
}

function calibrationError(tops: readonly Top[]): number {
  const sorted = tops.toSorted((one, other) => one.probability - other.probability);
  const bins = Math.min(BINS, sorted.length);
  let sum = 0;
  for (let bin = 0; bin < bins; bin++) {
    const from = Math.floor((bin * sorted.length) / bins);
    const part = sorted.slice(from, Math.floor(((bin + 1) * sorted.length) / bins));
    sum += Math.abs(part.reduce((total, { probability, right }) => total + probability - right, 0));
  }
  return sum / sorted.length;
}

/** Returns the arithmetic mean; NaN if there are no values. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
