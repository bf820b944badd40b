/** The parts of a decision that the output repeats, read from the body of the answer. */
import type { Asked } from './asked.ts';
import { memberTexts } from './json-text.ts';
import type { ColumnType } from './row.ts';

/** A decision as it was received. */
export interface Answered {
  /** The `answers` of the body as they stand there, but in one line. */
  readonly answersJson: string;
  readonly inputTokens: number;
  /** The number of tokens that were left out because a text was too long for the model. */
  readonly truncatedTokens: number;
}

/** Returns the decision in a body; undefined if the body is no decision. */
export function readAnswered(body: string): Answered | undefined {
  const members = memberTexts(body);
  const [answersJson, usage] = [members?.get('answers'), members?.get('usage')];
  if (!answersJson?.startsWith('{') || !usage?.startsWith('{')) return undefined;
  const { input_tokens = 0, truncated_tokens = 0 } = JSON.parse(usage) as Readonly<Record<string, number | undefined>>;
  // A row of the output is one line, and a raw line break can stand only between the tokens of JSON, never inside a
  // string.
  const oneLine = answersJson.replaceAll(/\s*[\r\n]\s*/g, ' ');
  return { answersJson: oneLine, inputTokens: input_tokens, truncatedTokens: truncated_tokens };
}

/** The fields of an answer that the output's columns use. */
interface Answer {
  readonly type: 'choice' | 'score' | 'noul';
  readonly choice?: string;
  readonly score?: number;
  readonly noul?: number;
  readonly probabilities: Readonly<Record<string, number>>;
  readonly confidence: number;
  readonly answer_confidence: number;
  readonly action?: { readonly act_probability: number };
}

type Answers = Readonly<Record<string, Answer>>;

/** A column of the output for a part of the answers. */
export interface AnswerColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly value: (answers: Answers, answered: Answered) => string | number | undefined;
}

/**
 * Returns the columns of a table for the answers to `asked`: for each question its verdict, its confidences and its
 * probabilities. The answers in `sample` only decide whether there are columns for the model's action, since the
 * questions do not tell.
 */
export function answerColumns(asked: readonly Asked[], sample: Answered): AnswerColumn[] {
  const answers: Answers = JSON.parse(sample.answersJson);
  return [
    ...asked.flatMap((question) => questionColumns(question, answers[question.id]?.action !== undefined)),
    { name: 'svc.input_tokens', type: 'int32', value: (_, { inputTokens }) => inputTokens },
    { name: 'svc.truncated_tokens', type: 'int32', value: (_, { truncatedTokens }) => truncatedTokens },
  ];
}

function questionColumns({ id, type, labels }: Asked, hasAction: boolean): AnswerColumn[] {
  const column = (suffix: string, value: (answer: Answer) => string | number | undefined): AnswerColumn => ({
    name: suffix === '' ? id : `${id}.${suffix}`,
    type: suffix === '' && type === 'choice' ? 'text' : 'double',
    value: (answers) => {
      const answer = answers[id];
      return answer && value(answer);
    },
  });
  return [
    column('', (answer) => answer[answer.type]),
    column('confidence', ({ confidence }) => confidence),
    column('answer_confidence', ({ answer_confidence }) => answer_confidence),
    ...labels.map((label) => column(`p.${label}`, ({ probabilities }) => probabilities[label])),
    ...(hasAction ? [column('act_probability', ({ action }) => action?.act_probability)] : []),
  ];
}
