/**
 * `POST /v1/systemone` and its batch, as the engine reads and writes them. The engine does the checking; these schemas
 * only describe.
 */
import Type, { type TSchema } from 'typebox';
import { MODEL_NAME } from './wire.ts';

/** Returns a reference to one of `components.schemas` of the OpenAPI document. */
export const ref = (name: string) => Type.Ref(`#/components/schemas/${name}`);

/** Returns the schema of an object with any keys whose values all have one schema. */
const mapOf = (schema: TSchema, options: object = {}) => Type.Object({}, { additionalProperties: schema, ...options });

const Probability = Type.Number({ minimum: 0, maximum: 1 });
const Confidence = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'How far the probabilities are from a blind guess.',
});
const AnswerConfidence = Type.Number({ minimum: 0, maximum: 1, description: 'The highest of the probabilities.' });
const Tokens = Type.Integer({ minimum: 0 });

/** The values that may stand for a text: an object or a list stands for its compact JSON text. */
const TEXT = Type.Union([Type.String(), Type.Null(), Type.Object({}), Type.Array(Type.Unknown())]);

const instructions = Type.Optional(
  Type.Union(TEXT.anyOf, { description: 'The question. An object or a list is JSON text.' }),
);

const NoulQuestion = Type.Object(
  {
    type: Type.Literal('noul'),
    instructions,
    criteria: Type.Optional(
      Type.Union([Type.Null(), Type.Object({ true: Type.Optional(ref('Text')), false: Type.Optional(ref('Text')) })], {
        description: 'What yes and no mean; one side alone is fine.',
      }),
    ),
  },
  { description: 'Yes or no.' },
);

const ChoiceQuestion = Type.Object(
  {
    type: Type.Literal('choice'),
    instructions,
    criteria: Type.Union([
      mapOf(ref('Text'), { minProperties: 2, description: 'Each option with its description.' }),
      Type.Array(Type.String(), { minItems: 2, uniqueItems: true, description: 'Options whose names say it all.' }),
    ]),
  },
  { description: 'One of several named options.' },
);

const ScoreQuestion = Type.Object(
  {
    type: Type.Literal('score'),
    instructions,
    criteria: Type.Array(ref('Text'), { minItems: 2, description: 'The levels, the lowest first.' }),
  },
  { description: 'A place on an ordered list of levels.' },
);

const Questions = mapOf(ref('Question'), { minProperties: 1, description: 'Each question by an id of your choice.' });

const DecisionRequest = Type.Object({
  state: Type.Unknown({
    description:
      'What the questions are about. A string is its own text; any other value is its raw JSON text, as sent.',
  }),
  questions: ref('Questions'),
});

const BatchRequest = Type.Object({
  states: Type.Array(Type.Unknown(), { description: 'Each of them is what `state` is in a single request.' }),
  questions: ref('Questions'),
});

const answerOf = <Properties extends Record<string, TSchema>>(type: string, own: Properties) =>
  Type.Object({
    type: Type.Literal(type),
    ...own,
    probabilities: mapOf(Probability, { description: 'They add up to 1.' }),
    confidence: Confidence,
    answer_confidence: AnswerConfidence,
    action: Type.Optional(Type.Object({ act_probability: Probability })),
  });

const NoulAnswer = answerOf('noul', { noul: Type.Number({ minimum: 0, maximum: 1, description: 'Of `true`.' }) });
const ChoiceAnswer = answerOf('choice', { choice: Type.String({ description: 'The most probable option.' }) });
const ScoreAnswer = answerOf('score', {
  score: Type.Number({ minimum: 0, description: 'The sum of each level, counted from 0, times its probability.' }),
  legend: mapOf(Type.Unknown(), { description: 'Each level as it was sent.' }),
});

const Answers = mapOf(ref('Answer'), { description: 'One answer for each question, in their order.' });

const Usage = Type.Object({
  input_tokens: Tokens,
  output_tokens: Type.Literal(0),
  server_ms: Type.Number({ minimum: 0, description: 'From reading the request to the decoded answer.' }),
  truncated_tokens: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Tokens that were too many for the model.' }),
  ),
});

const DecisionResponse = Type.Object({ model: Type.Literal(MODEL_NAME), answers: ref('Answers'), usage: ref('Usage') });

const BatchResult = Type.Union([
  Type.Object({ answers: ref('Answers'), usage: ref('Usage') }),
  Type.Object({ error: Type.Object({ error_type: Type.String(), message: Type.String() }) }),
]);

const BatchResponse = Type.Object({
  model: Type.Literal(MODEL_NAME),
  results: Type.Array(ref('BatchResult'), { description: 'One for each state, in their order.' }),
  usage: ref('Usage'),
});

/** The schemas, by their names in the OpenAPI document. */
export const DecisionSchemas = {
  Text: TEXT,
  NoulQuestion,
  ChoiceQuestion,
  ScoreQuestion,
  Question: Type.Union([ref('NoulQuestion'), ref('ChoiceQuestion'), ref('ScoreQuestion')]),
  Questions,
  DecisionRequest,
  NoulAnswer,
  ChoiceAnswer,
  ScoreAnswer,
  Answer: Type.Union([ref('NoulAnswer'), ref('ChoiceAnswer'), ref('ScoreAnswer')]),
  Answers,
  Usage,
  DecisionResponse,
  BatchRequest,
  BatchResult,
  BatchResponse,
};
