/** `POST /v1/decisions` in the format of OpenAI's Decisions API, as the engine reads and writes it. */
import Type from 'typebox';
import { ref } from './decision.ts';
import { MODEL_NAME } from './wire.ts';

const Name = Type.Union([Type.String(), Type.Null()]);
const Probability = Type.Number({ minimum: 0, maximum: 1 });
const optionalText = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const Content = Type.Union([Type.String(), Type.Array(ref('OpenAiPart'))]);

const Part = Type.Union([
  Type.Object({ type: Type.Enum(['input_text', 'output_text']), text: Type.String() }),
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
  Type.Object({
    type: Type.Literal('input_json'),
    data: Type.Union([Type.Object({}), Type.Array(Type.Unknown())]),
  }),
]);

const Message = Type.Object({
  type: Type.Optional(Type.Literal('message')),
  role: Type.Enum(['user', 'developer', 'system', 'assistant']),
  content: Content,
});

const call = (type: string, said: 'arguments' | 'input') =>
  Type.Object({
    type: Type.Literal(type),
    call_id: Type.String(),
    name: Type.String(),
    [said]: Type.String(),
  });

const output = (type: string) => Type.Object({ type: Type.Literal(type), call_id: Type.String(), output: Content });

const Item = Type.Union([
  Message,
  call('function_call', 'arguments'),
  output('function_call_output'),
  call('custom_tool_call', 'input'),
  output('custom_tool_call_output'),
]);

const Predicate = Type.Object({ type: Type.Literal('predicate'), name: optionalText, instructions: Content });

const Choice = Type.Object({
  type: Type.Literal('choice'),
  name: optionalText,
  instructions: Content,
  choices: Type.Array(
    Type.Object({
      value: Type.Union([Type.String(), Type.Boolean()]),
      description: optionalText,
    }),
    {
      minItems: 2,
      description: 'No value twice; a string and a boolean with the same text are two.',
    },
  ),
});

const Score = Type.Object({
  type: Type.Literal('score'),
  name: optionalText,
  instructions: Content,
  levels: Type.Array(Type.Object({ label: Type.String(), description: optionalText }), {
    minItems: 2,
    description: 'The lowest first.',
  }),
});

const OpenAiDecisionRequest = Type.Object({
  model: Type.Optional(Type.Unknown({ description: 'Any; there is one model.' })),
  input: Type.Union([Type.String(), Type.Array(ref('OpenAiItem'), { minItems: 1 })], {
    description: 'A text, or one user message, is the state as it stands; any other input is a transcript.',
  }),
  questions: Type.Array(ref('OpenAiQuestion'), { minItems: 1 }),
});

const PredicateAnswer = Type.Object({ type: Type.Literal('predicate'), name: Name, probability: Probability });

const ChoiceAnswer = Type.Object({
  type: Type.Literal('choice'),
  name: Name,
  choice: Type.Union([Type.String(), Type.Boolean()]),
  confidence: Probability,
  probabilities: Type.Array(
    Type.Object({ value: Type.Union([Type.String(), Type.Boolean()]), probability: Probability }),
  ),
});

const ScoreAnswer = Type.Object({
  type: Type.Literal('score'),
  name: Name,
  score: Type.Number({ minimum: 0 }),
  confidence: Probability,
  probabilities: Type.Array(
    Type.Object({ value: Type.Integer({ minimum: 0 }), label: Type.String(), probability: Probability }),
  ),
});

const Count = Type.Integer({ minimum: 0 });

const OpenAiUsage = Type.Object({
  input_tokens: Count,
  input_tokens_details: Type.Object({ cache_write_tokens: Type.Literal(0), cached_tokens: Type.Literal(0) }),
  output_tokens: Type.Literal(0),
  output_tokens_details: Type.Object({ reasoning_tokens: Type.Literal(0) }),
  total_tokens: Count,
  truncated_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
});

/** The schemas, by their names in the OpenAPI document. */
export const OpenAiDecisionSchemas = {
  OpenAiPart: Part,
  OpenAiItem: Item,
  OpenAiQuestion: Type.Union([Predicate, Choice, Score]),
  OpenAiDecisionRequest,
  OpenAiAnswer: Type.Union([PredicateAnswer, ChoiceAnswer, ScoreAnswer]),
  OpenAiUsage,
  OpenAiDecision: Type.Object({
    model: Type.Literal(MODEL_NAME),
    answers: Type.Array(ref('OpenAiAnswer'), { description: 'In the order of the questions.' }),
    usage: ref('OpenAiUsage'),
  }),
};
