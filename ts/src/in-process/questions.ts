/** The types of questions and answers; the types of the answers follow from the literal questions. */

/** A text; a list or an object stands for its compact JSON text. */
export type Text = string | object;

/** A question with the answers yes and no. */
export interface NoulQuestion {
  readonly type: 'noul';
  readonly instructions?: Text | null | undefined;
  /** The meanings of yes (`true`) and no (`false`); either may be left out. */
  readonly criteria?: { readonly true?: Text | null; readonly false?: Text | null } | null | undefined;
}

/** A question for one of several named options, at least two. */
export interface ChoiceQuestion {
  readonly type: 'choice';
  readonly instructions?: Text | null | undefined;
  /** The options with their descriptions, or the options alone. JavaScript puts names that look like integers first. */
  readonly criteria: Readonly<Record<string, Text | null>> | readonly string[];
}

/** A question for a place on an ordered list of levels, at least two. */
export interface ScoreQuestion {
  readonly type: 'score';
  readonly instructions?: Text | null | undefined;
  /** The texts of the levels, the lowest level first; a level of `null` is called by its number. */
  readonly criteria: readonly (Text | null)[];
}

export type Question = NoulQuestion | ChoiceQuestion | ScoreQuestion;

/** The questions of a request by their ids. */
export type Questions = Readonly<Record<string, Question>>;

/** The fields of every answer. Probabilities have six decimals and add up to 1. */
interface Certainty<Label extends string> {
  readonly probabilities: Readonly<Record<Label, number>>;
  /** The distance of the probabilities from a blind guess, from 0 to 1. */
  readonly confidence: number;
  /** The highest of the probabilities, from 0 to 1. */
  readonly answer_confidence: number;
  /** The model's action output; absent if the model has none. `act_probability` is from 0 to 1. */
  readonly action?: { readonly act_probability: number };
}

export interface NoulAnswer extends Certainty<'true' | 'false'> {
  readonly type: 'noul';
  /** The probability of yes, from 0 to 1. */
  readonly noul: number;
}

export interface ChoiceAnswer<Option extends string = string> extends Certainty<Option> {
  readonly type: 'choice';
  /** The most probable option. */
  readonly choice: Option;
}

export interface ScoreAnswer<Levels extends ScoreQuestion['criteria'] = ScoreQuestion['criteria']>
  extends Certainty<LevelNumber<Levels>> {
  readonly type: 'score';
  /** The expected level: the sum over the levels of their number, counted from 0, times their probability. */
  readonly score: number;
  /** The text of each level by its number. */
  readonly legend: Readonly<Legend<Levels>>;
}

/** The names of a choice's options. */
export type OptionOf<Criteria extends ChoiceQuestion['criteria']> = Criteria extends readonly (infer Name extends
  string)[]
  ? Name
  : `${Extract<keyof Criteria, string | number>}`;

/** The numbers of a score's levels, from `0`, as text. */
export type LevelNumber<Levels extends readonly unknown[]> = number extends Levels['length']
  ? `${number}`
  : Extract<keyof Levels, `${number}`>;

type Legend<Levels extends readonly unknown[]> = number extends Levels['length']
  ? Record<`${number}`, Exclude<Levels[number], null>>
  : { [Level in Extract<keyof Levels, `${number}`>]: Levels[Level] extends null ? Level : Levels[Level] };

/** The answer to a question of this type. */
export type AnswerTo<Asked extends Question> = Asked extends ChoiceQuestion
  ? ChoiceAnswer<OptionOf<Asked['criteria']>>
  : Asked extends ScoreQuestion
    ? ScoreAnswer<Asked['criteria']>
    : NoulAnswer;

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: 0;
  /** The time from accepting the request to the decoded answer, in milliseconds. */
  readonly server_ms: number;
  /** The number of tokens that were left out because a text was too long for the model; absent if there are none. */
  readonly truncated_tokens?: number;
}

/** The answers to all questions of a request, in the same form as over HTTP. */
export interface Decision<Asked extends Questions = Questions> {
  readonly model: 'svc';
  readonly answers: { readonly [Id in keyof Asked]: AnswerTo<Asked[Id]> };
  readonly usage: Usage;
}
