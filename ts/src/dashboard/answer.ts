/** The body of a decision's answer, read in its own order: `JSON.parse` would put options like `10` and `2` first. */
import { type Node, parseTree } from 'jsonc-parser';
import type { QuestionType } from '../schemas/names.ts';

export interface NamedProbability {
  /** The caller's name of the outcome: an option, `true` or `false`, or the number of a level. */
  readonly name: string;
  /** The text of a level; for other outcomes, the name. */
  readonly label: string;
  readonly probability: number;
}

export interface Answer {
  readonly id: string;
  readonly type: QuestionType;
  /** The option, the expected level or the probability of yes, as in the answer. */
  readonly value: string | number;
  /** The outcomes in the order of the request; `true` before `false`. */
  readonly outcomes: readonly NamedProbability[];
  readonly confidence: number;
  readonly answerConfidence: number;
  readonly actProbability: number | undefined;
}

export interface Decision {
  readonly answers: readonly Answer[];
  readonly inputTokens: number;
  /** The number of tokens that were left out because a text was too long for the model. */
  readonly truncatedTokens: number;
  readonly serverMs: number;
}

/** Returns the decision that the server wrote in `body`. */
export function readDecision(body: string): Decision {
  const root = members(parseTree(body));
  const usage = members(root.get('usage'));
  return {
    answers: [...members(root.get('answers'))].map(([id, node]) => readAnswer(id, members(node))),
    inputTokens: numberOf(usage.get('input_tokens')),
    truncatedTokens: numberOf(usage.get('truncated_tokens')),
    serverMs: numberOf(usage.get('server_ms')),
  };
}

type Members = ReadonlyMap<string, Node>;

function readAnswer(id: string, fields: Members): Answer {
  const type = fields.get('type')?.value as QuestionType;
  const legend = members(fields.get('legend'));
  const outcomes = [...members(fields.get('probabilities'))].map(([name, node]) => ({
    name,
    label: labelOf(legend.get(name)) ?? name,
    probability: numberOf(node),
  }));
  const act = members(fields.get('action')).get('act_probability');
  return {
    id,
    type,
    value: fields.get(type)?.value as string | number,
    outcomes: type === 'noul' ? outcomes.sort((a, b) => b.name.localeCompare(a.name)) : outcomes,
    confidence: numberOf(fields.get('confidence')),
    answerConfidence: numberOf(fields.get('answer_confidence')),
    actProbability: act && numberOf(act),
  };
}

function members(node: Node | undefined): Members {
  return new Map((node?.children ?? []).map(({ children }) => [String(children?.[0]?.value), children?.[1] as Node]));
}

function numberOf(node: Node | undefined): number {
  return typeof node?.value === 'number' ? node.value : 0;
}

/** Returns the text of a level; undefined if the level is an object or a list. */
function labelOf(node: Node | undefined): string | undefined {
  return typeof node?.value === 'string' ? node.value : undefined;
}
