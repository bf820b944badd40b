/** The check of an answer's body: only a body that answers exactly the questions asked counts as an answer. */
import { isDeepStrictEqual } from 'node:util';
import { parseTree } from 'jsonc-parser';
import type { Asked } from './asked.ts';
import { parsedJson } from './json-text.ts';

/** Probabilities are rounded to six decimals; another server may round otherwise than this one. */
const ROUNDING = 1e-3;

/** The checked fields of a body, of an answer and of their parts. */
type Field =
  | ('answers' | 'usage' | 'input_tokens' | 'truncated_tokens')
  | ('type' | 'noul' | 'choice' | 'score' | 'legend')
  | ('probabilities' | 'confidence' | 'answer_confidence' | 'action' | 'act_probability');

type Values = Readonly<Record<string, unknown>> & { readonly [field in Field]?: unknown };

/** Returns the fault of `body` as an answer to the questions, in a few words; undefined if it has none. */
export function faultIn(body: string, asked: readonly Asked[]): string | undefined {
  const value = parsedJson(body);
  if (value === undefined) return 'no JSON';
  if (!isObject(value) || !isObject(value.answers)) return 'no decision';
  const { answers, usage } = value;
  for (const question of asked) {
    if (!Object.hasOwn(answers, question.id)) return `no answer to ${quotedName(question.id)}`;
    const fault = faultInAnswer(answers[question.id], question);
    if (fault !== undefined) return `an answer to ${quotedName(question.id)} ${fault}`;
  }
  const fault = faultInNames(answerNames(body), asked);
  if (fault !== undefined) return fault;
  return isObject(usage) && isCount(usage.input_tokens) && isCount(usage.truncated_tokens ?? 0)
    ? undefined
    : 'no usage';
}

/** Returns the fault in `names`, which include every asked question: a further name is too many. */
function faultInNames(names: readonly string[], asked: readonly Asked[]): string | undefined {
  if (names.length === asked.length) return undefined;
  const ids = new Set(asked.map(({ id }) => id));
  const other = names.find((name) => !ids.has(name));
  return other === undefined ? 'two answers to one question' : `an answer to ${quotedName(other)}, which was not asked`;
}

/**
 * Returns the names of the answers from the text of `body`, because a parsed object keeps only one of two equal names.
 */
function answerNames(body: string): string[] {
  const members = parseTree(body)?.children ?? [];
  const named = members.filter(({ children }) => children?.[0]?.value === 'answers');
  return named.flatMap(({ children }) => children?.[1]?.children ?? []).map(({ children }) => children?.[0]?.value);
}

function faultInAnswer(answer: unknown, asked: Asked): string | undefined {
  const { type, labels } = asked;
  if (!isObject(answer)) return 'that is no object';
  if (answer.type !== type) return `that is not of type ${type}`;
  const { probabilities, confidence, answer_confidence: highest, action } = answer;
  if (!isObject(probabilities) || !hasNames(probabilities, labels)) return 'with probabilities of other options';
  const shares = labels.map((label) => probabilities[label]);
  if (!shares.every(isShare)) return 'with probabilities that are none';
  if (!isNear(sum(shares), 1)) return 'with probabilities that do not add up to 1';
  if (!isShare(confidence) || !isShare(highest) || !isNear(highest, Math.max(...shares)))
    return 'with a confidence that is none';
  if (action !== undefined && !(isObject(action) && isShare(action.act_probability)))
    return 'with an action that is none';
  return isVerdict(answer, asked, shares) ? undefined : 'that does not fit its probabilities';
}

/** Whether the verdict follows from the probabilities, and the legend repeats the levels that were sent. */
function isVerdict(answer: Values, { type, labels, legend }: Asked, shares: readonly number[]): boolean {
  if (type === 'noul') return isNear(answer.noul, shares[1] ?? 0);
  if (type === 'choice') {
    const share = shares[labels.indexOf(String(answer.choice))];
    return typeof answer.choice === 'string' && isNear(share, Math.max(...shares));
  }
  const said = isObject(answer.legend) ? answer.legend : {};
  const isLegend = isDeepStrictEqual(
    labels.map((label) => said[label]),
    [...legend],
  );
  const score = sum(shares.map((share, level) => share * level));
  return isLegend && hasNames(said, labels) && isNear(answer.score, score, labels.length);
}

function hasNames(values: Values, names: readonly string[]): boolean {
  return Object.keys(values).length === names.length && names.every((name) => Object.hasOwn(values, name));
}

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31;
}

function isShare(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1;
}

function isNear(value: unknown, expected: number, roundings = 1): boolean {
  return typeof value === 'number' && Math.abs(value - expected) <= ROUNDING * roundings;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Returns a name quoted for a message and shortened to 60 characters: it comes from the questions or from a server, and
 * may be long.
 */
function quotedName(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
