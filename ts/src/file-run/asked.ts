/**
 * The questions that were asked: they determine which answers are possible, from the engine as well as from a server.
 */
import { memberTexts } from './json-text.ts';

/** A question, reduced to the parts that its answer must repeat. */
export interface Asked {
  readonly id: string;
  readonly type: string;
  /** The names of its probabilities, in their order; empty if the criteria are not understood. */
  readonly labels: readonly string[];
  /** For a score, the legend's value for each label; otherwise empty. */
  readonly legend: readonly unknown[];
}

/**
 * Returns the questions in an object of them, given as JSON text. The engine does not parse them here, because a
 * machine whose rows are answered by servers may have no engine.
 */
export function askedQuestions(questionsJson: string): Asked[] {
  return [...(memberTexts(questionsJson) ?? [])].map(([id, json]) => {
    const members = memberTexts(json);
    const type = String(jsonValue(members?.get('type')));
    return { id, type, ...outcomes(type, members?.get('criteria') ?? 'null') };
  });
}

/** The names are read from the text, because a JavaScript object would put names that look like integers first. */
function outcomes(type: string, criteriaJson: string): Pick<Asked, 'labels' | 'legend'> {
  if (type === 'noul') return { labels: ['false', 'true'], legend: [] };
  const criteria = jsonValue(criteriaJson);
  const list: readonly unknown[] | undefined = Array.isArray(criteria) ? criteria : undefined;
  if (type === 'score') {
    const labels = (list ?? []).map((_, level) => String(level));
    return { labels, legend: (list ?? []).map((level, at) => level ?? labels[at]) };
  }
  if (type !== 'choice') return { labels: [], legend: [] };
  return { labels: list?.map(String) ?? [...(memberTexts(criteriaJson)?.keys() ?? [])], legend: [] };
}

function jsonValue(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
