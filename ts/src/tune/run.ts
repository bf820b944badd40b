/** The run from labelled rows to a model folder whose probabilities fit them. */
import type { Decider } from '../file-run/decider.ts';
import { engineDecider } from '../file-run/here.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { rowProbabilities, scaledLogits } from './ask.ts';
import { type Calibration, calibrated } from './fit.ts';
import { type Destination, FolderCopy, requireFreeFolder } from './folder.ts';
import { judge } from './judge.ts';
import type { AskedQuestion, LabelledRow } from './labels.ts';
import { questionTitle, type Tuned } from './report.ts';

/**
 * The temperature for reading logits. Probabilities have six decimals; at this high temperature all of them are far
 * from 0, so their logarithms give the logits to about a thousandth.
 */
const READING_TEMPERATURE = 16;

/**
 * The largest difference allowed between the written folder's probabilities and the fitted ones; roundings or another
 * device cause small ones.
 */
const TOLERANCE = 0.01;

const SAME_DESCRIPTION =
  'options with the same description are one to this model, so their probabilities cannot be fitted';

export interface TuneRun {
  readonly rows: readonly LabelledRow[];
  readonly destination: Destination;
  readonly config: Config;
  readonly seed: number;
  readonly stop: AbortSignal;
  /** A callback with the number of rows that the model has just answered. */
  readonly onRows: (count: number) => void;
}

/**
 * Returns the result for each question, in the order of the rows. The folder is written if at least one question has a
 * calibration.
 *
 * @throws Refusal when the folder cannot be read or written, or when the model reads options of a question as one; the
 * reason of `stop` when that signal has fired.
 */
export async function runTune(run: TuneRun): Promise<Tuned[]> {
  requireFreeFolder(run.destination);
  const copy = new FolderCopy(run.destination);
  try {
    const shared = run.rows.find(({ question }) => copy.readsAsOne(question));
    if (shared) throw new Refusal(`${run.destination.data}: ${shared.where}: ${SAME_DESCRIPTION}`);
    const logits = await readLogits(run, copy);
    const tuned = judgeAll(run, { logits, copy });
    const calibrations = calibrationsOf(tuned);
    if (calibrations.size > 0) {
      copy.writeCalibrations(calibrations);
      await checkFolder(run, { logits, calibrations, model: copy.path });
      run.stop.throwIfAborted();
      copy.publish();
    }
    return tuned;
  } finally {
    copy.remove();
  }
}

async function readLogits({ rows, destination, onRows, ...run }: TuneRun, copy: FolderCopy): Promise<number[][]> {
  copy.writeTemperature(READING_TEMPERATURE);
  const asking = { path: destination.data, onRows };
  const probabilities = await withModel(run, copy.path, (decider) => rowProbabilities(rows, { decider, ...asking }));
  return probabilities.map((row) => scaledLogits(row).map((scaled) => scaled * READING_TEMPERATURE));
}

async function withModel<Result>(
  { config, stop }: Pick<TuneRun, 'config' | 'stop'>,
  model: string,
  work: (decider: Decider) => Promise<Result>,
): Promise<Result> {
  const decider = await engineDecider({ ...config, model }, stop);
  try {
    return await work(decider);
  } finally {
    await decider.close();
  }
}

interface Read {
  /** The logits of each row. */
  readonly logits: readonly (readonly number[])[];
  readonly copy: FolderCopy;
}

function judgeAll({ rows, seed }: TuneRun, { logits, copy }: Read): Tuned[] {
  const byQuestion = new Map<AskedQuestion, number[]>();
  for (const [index, { question }] of rows.entries()) {
    const indexes = byQuestion.get(question);
    if (indexes) indexes.push(index);
    else byQuestion.set(question, [index]);
  }
  return [...byQuestion].map(([question, indexes]) => {
    const examples = indexes.flatMap((index) => {
      const row = rows[index];
      return row ? [{ logits: logits[index] ?? [], label: row.label, state: row.stateJson }] : [];
    });
    return { question, verdict: judge({ examples, before: copy.calibrationOf(question), seed }) };
  });
}

function calibrationsOf(tuned: readonly Tuned[]): Map<string, Calibration> {
  return new Map(
    tuned.flatMap(({ question, verdict: { calibration } }) => (calibration ? [[question.key, calibration]] : [])),
  );
}

interface Written {
  readonly logits: readonly (readonly number[])[];
  readonly calibrations: ReadonlyMap<string, Calibration>;
  readonly model: string;
}

/** Checks that the folder, loaded as it will be served, gives one row of each question the fitted probabilities. */
async function checkFolder(
  { rows, destination, ...run }: TuneRun,
  { logits, calibrations, model }: Written,
): Promise<void> {
  const samples = [...calibrations].flatMap(([key, calibration]) => {
    const index = rows.findIndex(({ question }) => question.key === key);
    const row = rows[index];
    return row ? [{ row, expected: calibrated(logits[index] ?? [], calibration) }] : [];
  });
  const found = await withModel(run, model, (decider) =>
    rowProbabilities(
      samples.map(({ row }) => row),
      { decider, path: destination.data },
    ),
  );
  for (const [index, { row, expected }] of samples.entries()) {
    const distance = Math.max(...expected.map((p, option) => Math.abs(p - (found[index]?.[option] ?? 0))));
    if (distance <= TOLERANCE) continue;
    throw new Refusal(
      `${questionTitle(row.question)}: the folder that was made gives it other probabilities than were fitted`,
    );
  }
}
