/** What is asked and what is answered, as types: those of the answers follow from the literal questions. */

/** A text, or a list or an object that counts as its compact JSON text. */
export type Text = string | object;

/** Yes or no. */
export interface NoulQuestion {
  readonly type: 'noul';
  readonly instructions?: Text | null | undefined;
  /** What yes and no mean. */
  readonly criteria?: { readonly true?: Text | null; readonly false?: Text | null } | null | undefined;
}

/** One of several named options, at least two. */
export interface ChoiceQuestion {
  readonly type: 'choice';
  readonly instructions?: Text | null | undefined;
  /** Each option's description, or the options alone. JavaScript puts names that look like integers first. */
  readonly criteria: Readonly<Record<string, Text | null>> | readonly string[];
}

/** A place on an ordered list of levels, at least two. */
export interface ScoreQuestion {
  readonly type: 'score';
  readonly instructions?: Text | null | undefined;
  /** The lowest level first; `null` is a level that is called by its number. */
  readonly criteria: readonly (Text | null)[];
}

export type Question = NoulQuestion | ChoiceQuestion | ScoreQuestion;

/** Questions by their ids. */
export type Questions = Readonly<Record<string, Question>>;

/** What every answer has. Probabilities have six decimals and add up to 1. */
interface Certainty<Label extends string> {
  readonly probabilities: Readonly<Record<Label, number>>;
  /** How far the probabilities are from a blind guess, from 0 to 1. */
  readonly confidence: number;
  /** The highest of the probabilities. */
  readonly answer_confidence: number;
  /** Present where the model has such an output. */
  readonly action?: { readonly act_probability: number };
}

export interface NoulAnswer extends Certainty<'true' | 'false'> {
  readonly type: 'noul';
  /** The probability of yes. */
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
  /** The sum of level times probability. */
  readonly score: number;
  /** Each level's text by its number. */
  readonly legend: Readonly<Legend<Levels>>;
}

/** The names of a choice's options. */
export type OptionOf<Criteria extends ChoiceQuestion['criteria']> = Criteria extends readonly (infer Name extends
  string)[]
  ? Name
  : `${Extract<keyof Criteria, string | number>}`;

/** The numbers of a score's levels, as text. */
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
  /** Milliseconds from taking the request to the decoded answer. */
  readonly server_ms: number;
  /** Tokens that were left out because a text was too long for the model; absent when there are none. */
  readonly truncated_tokens?: number;
}

/** The answers to all questions of a request, in the shape that they have over HTTP. */
export interface Decision<Asked extends Questions = Questions> {
  readonly model: 'svc';
  readonly answers: { readonly [Id in keyof Asked]: AnswerTo<Asked[Id]> };
  readonly usage: Usage;
}
