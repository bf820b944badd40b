/** The model's probabilities for labelled rows. */
import type { Decider } from '../file-run/decider.ts';
import { inOrder } from '../file-run/in-order.ts';
import { objectText } from '../file-run/json-text.ts';
import { Refusal } from '../refusal.ts';
import type { AskedQuestion, LabelledRow } from './labels.ts';

/** The rows about one state, whose prefill serves all of their questions. */
type RowsOfState = readonly LabelledRow[];

/** The value for a probability of 0, which stands for less than half of the last decimal that is sent. */
const LEAST_PROBABILITY = 2.5e-7;

interface Asking {
  readonly decider: Decider;
  /** The file of the rows, for error messages about them. */
  readonly path: string;
  /** A callback after each state, with its number of rows. */
  readonly onRows?: (count: number) => void;
}

/**
 * Returns the probabilities that the decider gives to the options of each row, in the order of `rows`.
 *
 * @throws Refusal at the first row that gets no answer.
 */
export async function rowProbabilities(
  rows: readonly LabelledRow[],
  { decider, path, onRows }: Asking,
): Promise<number[][]> {
  const found = new Map<LabelledRow, number[]>();
  const decide = (group: RowsOfState) => decider.decide(requestOf(group));
  for await (const [group, outcome] of inOrder(toAsync(byState(rows)), decide, { items: decider.window })) {
    if (outcome.problem) throw new Refusal(`${path}: ${group[0]?.where}: ${outcome.problem.message}`);
    const { answers } = JSON.parse(outcome.body) as Response;
    for (const row of group) found.set(row, probabilitiesOf(row.question, answers[row.question.key]?.probabilities));
    onRows?.(group.length);
  }
  return rows.map((row) => found.get(row) ?? []);
}

/** Returns the logits over the temperature, up to a constant: their softmax gives the probabilities back. */
export function scaledLogits(probabilities: readonly number[]): number[] {
  return probabilities.map((p) => Math.log(Math.max(p, LEAST_PROBABILITY)));
}

interface Response {
  readonly answers: Readonly<Record<string, { readonly probabilities: Readonly<Record<string, number>> }>>;
}

function byState(rows: readonly LabelledRow[]): RowsOfState[] {
  const groups = new Map<string, LabelledRow[]>();
  for (const row of rows) {
    const group = groups.get(row.stateJson);
    if (group) group.push(row);
    else groups.set(row.stateJson, [row]);
  }
  return [...groups.values()];
}

async function* toAsync<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

function requestOf(group: RowsOfState) {
  const questions = new Map(group.map(({ question: { key, json } }) => [key, json]));
  return { stateJson: group[0]?.stateJson ?? '""', questionsJson: objectText([...questions]) };
}

function probabilitiesOf({ options }: AskedQuestion, byName: Readonly<Record<string, number>> = {}): number[] {
  return options.map((name) => byName[name] ?? 0);
}
