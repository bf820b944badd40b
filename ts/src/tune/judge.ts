/**
 * The decision whether a question's labels suffice to calibrate it, and with which calibration, judged on states that
 * no fit has seen.
 */
import { sha256Of } from '../files/sha256.ts';
import { type Calibration, calibrated, type Example, fit } from './fit.ts';
import { type Judged, logLoss, type Measures, mean, measures } from './measures.ts';

/** Labels about fewer different states are too few to judge by: a fifth of them would be fewer than ten. */
const FEWEST_STATES = 50;
/** A question gets a bias only if each of its options was right at least this often. */
const FEWEST_FOR_BIAS = 10;
/** The number of folds of the cross-validation. */
const FOLDS = 5;
/** A gain must exceed this many standard errors, so that chance explains it in fewer than one of twenty cases. */
const SURE = 1.645;

/** The labels of one question, and its current calibration. */
interface Evidence {
  readonly examples: readonly Example[];
  readonly before: Calibration;
  /** The seed of the split of the states; it affects nothing else. */
  readonly seed: number;
}

/** The result of judging the labels: either `calibration`, or the `reason` why there is none. */
export interface Verdict {
  readonly labels: number;
  /** The number of different states. */
  readonly states: number;
  /** The measures of the model as it is. */
  readonly before: Measures;
  /** The measures with calibrations fitted on other states; absent if there are too few labels to fit any. */
  readonly after?: Measures;
  readonly calibration?: Calibration;
  readonly reason?: string;
}

/** Returns the verdict on the labels of a question. */
export function judge({ examples, before, seed }: Evidence): Verdict {
  const now = examples.map((example) => judged(example, before));
  const states = new Set(examples.map(({ state }) => state)).size;
  const known = { labels: examples.length, states, before: measures(now) };
  const reason = tooLittle(examples, states);
  if (reason !== undefined) return { ...known, reason };
  const folds = foldsOf(examples, seed);
  const options = formOf({ examples, folds, start: before.temperature });
  const heldOut = crossValidated({ examples, folds, ...options });
  const gain = gainOf(examples, now, heldOut);
  const after = measures(heldOut);
  if (gain.mean <= 0) return { ...known, after, reason: 'held-out log-likelihood does not get better' };
  if (gain.mean <= SURE * gain.standardError) {
    return { ...known, after, reason: 'held-out log-likelihood gets better by no more than chance explains' };
  }
  return { ...known, after, calibration: roundedCalibration(fit(examples, options)) };
}

function judged({ logits, label }: Example, calibration: Calibration): Judged {
  return { probabilities: calibrated(logits, calibration), label };
}

function tooLittle(examples: readonly Example[], states: number): string | undefined {
  if (states < FEWEST_STATES) {
    return `${examples.length} labels about ${states} different states, at least ${FEWEST_STATES} states are needed`;
  }
  const isSame = examples.every(({ label }) => label === examples[0]?.label);
  return isSame ? `all ${examples.length} labels are the same, at least two different ones are needed` : undefined;
}

interface Split {
  readonly examples: readonly Example[];
  /** The fold of each example. */
  readonly folds: readonly number[];
  readonly start: number;
}

/**
 * Returns the fold of each example. Each state is dealt to the fold with the fewest examples, in an order that is
 * independent of the file's.
 */
function foldsOf(examples: readonly Example[], seed: number): number[] {
  const counts = new Map<string, number>();
  for (const { state } of examples) counts.set(state, (counts.get(state) ?? 0) + 1);
  const ordered = [...counts.keys()]
    .map((state) => [sha256Of(`${seed}\n${state}`), state] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const sizes = new Array<number>(FOLDS).fill(0);
  const foldOf = new Map<string, number>();
  for (const [, state] of ordered) {
    const fold = sizes.indexOf(Math.min(...sizes));
    sizes[fold] = (sizes[fold] ?? 0) + (counts.get(state) ?? 0);
    foldOf.set(state, fold);
  }
  return examples.map(({ state }) => foldOf.get(state) ?? 0);
}

/**
 * Returns the form of the fit: with a bias if each option was right often enough and the bias improves held-out states
 * by more than one standard error.
 */
function formOf(split: Split): { readonly start: number; readonly hasBias: boolean } {
  const { examples, start } = split;
  const counts = new Array<number>(examples[0]?.logits.length ?? 0).fill(0);
  for (const { label } of examples) counts[label] = (counts[label] ?? 0) + 1;
  if (Math.min(...counts) < FEWEST_FOR_BIAS) return { start, hasBias: false };
  const [without, withBias] = [false, true].map((hasBias) => crossValidated({ ...split, hasBias }));
  const gain = gainOf(examples, without ?? [], withBias ?? []);
  return { start, hasBias: gain.mean > gain.standardError };
}

/** Returns each example judged by a calibration that was fitted on the other folds. */
function crossValidated({ examples, folds, ...options }: Split & { readonly hasBias: boolean }): Judged[] {
  const calibrations = Array.from({ length: FOLDS }, (_, fold) =>
    fit(
      examples.filter((_, index) => folds[index] !== fold),
      options,
    ),
  );
  return examples.map((example, index) => {
    const calibration = calibrations[folds[index] ?? 0];
    return judged(example, calibration ?? { temperature: options.start, bias: [] });
  });
}

/**
 * Returns the decrease of the mean log loss and its standard error, where all labels about one state count as one draw.
 */
function gainOf(examples: readonly Example[], before: readonly Judged[], after: readonly Judged[]) {
  const gains = before.map((judged, index) => logLoss(judged) - logLoss(after[index] ?? judged));
  const center = mean(gains);
  const sums = new Map<string, number>();
  for (const [index, { state }] of examples.entries()) {
    sums.set(state, (sums.get(state) ?? 0) + (gains[index] ?? 0) - center);
  }
  const variance = [...sums.values()].reduce((sum, value) => sum + value * value, 0) / gains.length ** 2;
  return { mean: center, standardError: Math.sqrt(variance) };
}

/** Returns the calibration rounded to six digits, which are readable and more than the labels can determine. */
function roundedCalibration({ temperature, bias }: Calibration): Calibration {
  const digits = (value: number) => Number(value.toPrecision(6));
  return { temperature: digits(temperature), bias: bias.map(digits) };
}
