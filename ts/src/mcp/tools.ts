/** The tools that a model may call: each makes a decision request of its arguments, and a result of the answer. */
import Type, { type Static, type TSchema } from 'typebox';
import { Check, Errors } from 'typebox/schema';

/** The arguments of a call, as they came. */
export type Arguments = Readonly<Record<string, unknown>>;

/** A tool. Its schemas stand by themselves: many models read no references. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: TSchema;
  readonly outputSchema: TSchema;
  /** Returns the JSON text of the decision request for arguments that have the shape of `inputSchema`. */
  readonly request: (args: Arguments) => string;
  /** Returns the result, in the shape of `outputSchema`, for the JSON text of the decision's answer. */
  readonly result: (answer: string, args: Arguments) => Record<string, unknown>;
}

const Probability = Type.Number({ minimum: 0, maximum: 1 });
const Confidence = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'How far the probabilities are from a blind guess. Below 0.6 the answer is unsettled.',
});
const Truncated = Type.Optional(
  Type.Integer({ minimum: 1, description: 'Tokens of the text that were cut off, since the model reads no more.' }),
);
const State = Type.String({ description: 'The text that the question is about. A JSON value is given as its text.' });

/** The id of the one question in the requests of the small tools. */
const ID = 'q';

/** The parts of an answer that the results are made of. */
interface Answered {
  readonly answers: Readonly<Record<string, Answer>>;
  readonly usage: { readonly truncated_tokens?: number };
}

interface Answer {
  readonly probabilities: Readonly<Record<string, number>>;
  readonly confidence: number;
  readonly choice?: string;
  readonly score?: number;
  readonly noul?: number;
}

function oneAnswer(text: string): { readonly answer: Answer; readonly truncated: object } {
  const { answers, usage } = JSON.parse(text) as Answered;
  const { truncated_tokens } = usage;
  const truncated = truncated_tokens === undefined ? {} : { truncated_tokens };
  return { answer: answers[ID] ?? { probabilities: {}, confidence: 0 }, truncated };
}

/** Returns a request with one question. It is put together as text, because an object would reorder some names. */
function oneQuestion(state: string, question: { type: string; instructions: string; criteria?: string }): string {
  const { type, instructions, criteria } = question;
  const rest = criteria === undefined ? '' : `,"criteria":${criteria}`;
  const asked = `{"type":"${type}","instructions":${JSON.stringify(instructions)}${rest}}`;
  return `{"state":${JSON.stringify(state)},"questions":{"${ID}":${asked}}}`;
}

const CheckInput = Type.Object({
  state: State,
  statement: Type.String({ description: 'A statement, or a question with the answer yes or no.' }),
});

const CHECK: Tool = {
  name: 'check',
  title: 'Check a statement',
  description: 'Tells whether a statement about a text holds, with its probability.',
  inputSchema: CheckInput,
  outputSchema: Type.Object({
    holds: Type.Boolean({ description: 'Whether yes is more probable than no.' }),
    probability: Type.Number({ minimum: 0, maximum: 1, description: 'The probability of yes.' }),
    confidence: Confidence,
    truncated_tokens: Truncated,
  }),
  request(args) {
    const { state, statement } = args as Static<typeof CheckInput>;
    return oneQuestion(state, { type: 'noul', instructions: statement });
  },
  result(text) {
    const { answer, truncated } = oneAnswer(text);
    const probability = answer.noul ?? 0;
    return { holds: probability > 0.5, probability, confidence: answer.confidence, ...truncated };
  },
};

const ClassifyInput = Type.Object({
  state: State,
  instructions: Type.String({ description: 'The question that an option answers, such as "Which team?".' }),
  options: Type.Array(Type.String(), { minItems: 2, uniqueItems: true, description: 'The names of the options.' }),
  descriptions: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: Type.String(),
        description: 'What each option means, by its name, where the name is not enough.',
      },
    ),
  ),
});

const CLASSIFY: Tool = {
  name: 'classify',
  title: 'Classify a text',
  description: 'Chooses one of several named options for a text, with a probability for each.',
  inputSchema: ClassifyInput,
  outputSchema: Type.Object({
    choice: Type.String({ description: 'The most probable option.' }),
    probabilities: Type.Object({}, { additionalProperties: Probability, description: 'By option. They add up to 1.' }),
    confidence: Confidence,
    truncated_tokens: Truncated,
  }),
  request(args) {
    const { state, instructions, options, descriptions = {} } = args as Static<typeof ClassifyInput>;
    const described = descriptions as Readonly<Record<string, string>>;
    const members = options.map((option) => {
      const description = Object.hasOwn(described, option) ? (described[option] ?? null) : null;
      return `${JSON.stringify(option)}:${JSON.stringify(description)}`;
    });
    return oneQuestion(state, { type: 'choice', instructions, criteria: `{${members.join(',')}}` });
  },
  result(text) {
    const { answer, truncated } = oneAnswer(text);
    const { choice, probabilities, confidence } = answer;
    return { choice, probabilities, confidence, ...truncated };
  },
};

const ScoreInput = Type.Object({
  state: State,
  instructions: Type.String({
    description: 'The question that a level answers, such as "How angry is the customer?".',
  }),
  levels: Type.Array(Type.String(), { minItems: 2, description: 'The levels in their order, the lowest first.' }),
});

const SCORE: Tool = {
  name: 'score',
  title: 'Score a text',
  description: 'Places a text on an ordered list of levels, with a probability for each.',
  inputSchema: ScoreInput,
  outputSchema: Type.Object({
    score: Type.Number({
      minimum: 0,
      description: 'The expected level: the sum of each level, counted from 0, times its probability.',
    }),
    level: Type.String({ description: 'The most probable level.' }),
    levels: Type.Array(Type.Object({ level: Type.String(), probability: Probability }), {
      description: 'In the order of the request.',
    }),
    confidence: Confidence,
    truncated_tokens: Truncated,
  }),
  request(args) {
    const { state, instructions, levels } = args as Static<typeof ScoreInput>;
    return oneQuestion(state, { type: 'score', instructions, criteria: JSON.stringify(levels) });
  },
  result(text, args) {
    const { answer, truncated } = oneAnswer(text);
    const names = (args as Static<typeof ScoreInput>).levels;
    const levels = names.map((level, index) => ({ level, probability: answer.probabilities[index] ?? 0 }));
    const best = levels.reduce((one, other) => (other.probability > one.probability ? other : one));
    return { score: answer.score, level: best.level, levels, confidence: answer.confidence, ...truncated };
  },
};

const Questions = Type.Object(
  {},
  {
    minProperties: 1,
    additionalProperties: Type.Object({
      type: Type.Enum(['noul', 'choice', 'score'], { description: 'noul is yes or no.' }),
      instructions: Type.Optional(Type.String({ description: 'The question.' })),
      criteria: Type.Optional(
        Type.Unknown({
          description:
            'For choice the options, at least two: a list of names, or an object of name to description. For score ' +
            'the levels, at least two, the lowest first. For noul nothing, or what "true" and "false" mean.',
        }),
      ),
    }),
    description: 'The questions by ids of your choice.',
  },
);

const DECIDE: Tool = {
  name: 'decide',
  title: 'Answer questions about a state',
  description:
    'Answers any number of typed questions (yes or no, one of several options, a place on a scale) about one text or ' +
    'JSON value, each with calibrated probabilities.',
  inputSchema: Type.Object({
    state: Type.Unknown({ description: 'The text or JSON value that the questions are about.' }),
    questions: Questions,
  }),
  outputSchema: Type.Object({
    model: Type.String(),
    answers: Type.Object(
      {},
      {
        additionalProperties: Type.Object({
          type: Type.String(),
          probabilities: Type.Object({}, { additionalProperties: Probability }),
          confidence: Confidence,
          answer_confidence: Probability,
        }),
        description:
          'One answer for each question: `noul` is the probability of yes, `choice` an option, `score` a level.',
      },
    ),
    usage: Type.Object({ input_tokens: Type.Integer({ minimum: 0 }), truncated_tokens: Truncated }),
  }),
  request: (args) => JSON.stringify(args),
  result: (text) => JSON.parse(text) as Record<string, unknown>,
};

export const TOOLS: readonly Tool[] = [DECIDE, CLASSIFY, SCORE, CHECK];

/** Returns the first fault of arguments that have not the shape that a tool wants; undefined if they have it. */
export function faultOf({ inputSchema }: Tool, args: Arguments): string | undefined {
  if (Check(inputSchema, args)) return undefined;
  const [, errors] = Errors(inputSchema, args);
  const [first] = errors;
  const place = first?.instancePath.replace(/^\//, '').replaceAll('/', '.') || 'the arguments';
  return `${place} ${first?.message ?? 'have a wrong shape'}`;
}
