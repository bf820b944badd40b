/** What was asked: it says which answers there can be, whoever gives them. */
import { memberTexts } from './json-text.ts';

/** A question, read for what its answer must name. */
export interface Asked {
  readonly id: string;
  readonly type: string;
  /** The names of its probabilities, in their order; none when the criteria are not understood. */
  readonly labels: readonly string[];
  /** Of a score: the value that the legend has for each label. */
  readonly legend: readonly unknown[];
}

/**
 * The questions in an object of them, as JSON text. The engine is not asked for them: where servers answer, this
 * machine may have none.
 */
export function askedQuestions(questionsJson: string): Asked[] {
  return [...(memberTexts(questionsJson) ?? [])].map(([id, json]) => {
    const members = memberTexts(json);
    const type = String(jsonValue(members?.get('type')));
    return { id, type, ...outcomes(type, members?.get('criteria') ?? 'null') };
  });
}

/** Names are read from the text: an object of JavaScript would have those that look like integers first. */
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
