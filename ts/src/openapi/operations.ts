/** Every public route as in the OpenAPI document: its request, its answers, and its access. */
import Type, { type TSchema } from 'typebox';
import { ref } from '../schemas/decision.ts';
import { MODEL_NAME } from '../schemas/wire.ts';
import { ANSWER_EXAMPLES, type REQUEST_EXAMPLES } from './examples.ts';

/** The access to a route: open to everyone, with the API key, or with the dashboard password. */
export type Access = 'open' | 'key' | 'password';

/** A content type with its schema. */
export interface Content {
  readonly type: string;
  readonly schema: TSchema;
  readonly example?: unknown;
}

export interface Operation {
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
  readonly request?: keyof typeof REQUEST_EXAMPLES;
  /** The only value of `{id}` in the path. */
  readonly onlyId?: string;
  /** Whether the caller may state how long the answer is of use. */
  readonly takesTimeout?: true;
  /** The possible contents of a 200. */
  readonly answer: readonly Content[];
  /** The case in which the same content is answered with 202, before the work is done. */
  readonly accepted?: string;
  readonly answerHeaders?: Readonly<Record<string, TSchema>>;
  /** The content of a 503 that is not an ordinary error. */
  readonly unavailable?: Content;
}

const JSON_TYPE = 'application/json';

const json = (name: string): Content => ({
  type: JSON_TYPE,
  schema: ref(name),
  example: ANSWER_EXAMPLES[name as keyof typeof ANSWER_EXAMPLES],
});

const text = (description: string, type = 'text/plain'): Content => ({ type, schema: Type.String({ description }) });
const page = text('A page', 'text/html');

const TIMING = {
  'Server-Timing': Type.String({ description: 'Milliseconds of `encode`, `wait`, `run` and `total`.' }),
};

const DECISIONS: readonly Operation[] = [
  {
    method: 'post',
    path: '/v1/systemone',
    id: 'decide',
    summary: 'Answers questions about a state',
    description: 'Other fields beside `state` and `questions` are ignored. The content type is not looked at.',
    access: 'key',
    request: 'DecisionRequest',
    takesTimeout: true,
    answer: [json('DecisionResponse')],
    answerHeaders: TIMING,
  },
  {
    method: 'post',
    path: '/v1/systemone/batch',
    id: 'decideBatch',
    summary: 'Answers one set of questions about many states',
    description:
      'A bad state fails alone. With `Accept: application/x-ndjson` each result is a line, as soon as it is there; the last line has the usage of all.',
    access: 'key',
    request: 'BatchRequest',
    answer: [json('BatchResponse'), text('A result in each line', 'application/x-ndjson')],
  },
  {
    method: 'post',
    path: '/v1/decisions',
    id: 'createDecision',
    summary: "Answers questions about a state, in the shape of OpenAI's Decisions API",
    access: 'key',
    request: 'OpenAiDecisionRequest',
    takesTimeout: true,
    answer: [json('OpenAiDecision')],
    answerHeaders: TIMING,
  },
  {
    method: 'get',
    path: '/v1/models',
    id: 'listModels',
    summary: 'The model that answers',
    access: 'key',
    answer: [json('Models')],
  },
  {
    method: 'get',
    path: '/v1/models/{id}',
    id: 'getModel',
    summary: "The model that answers, in the shape of OpenAI's API",
    access: 'key',
    onlyId: MODEL_NAME,
    answer: [json('Model')],
  },
];

const HEALTH: readonly Operation[] = [
  {
    method: 'get',
    path: '/health',
    id: 'health',
    summary: 'What is loaded, and whether all is well',
    access: 'open',
    answer: [json('Health')],
    unavailable: json('Health'),
  },
  {
    method: 'get',
    path: '/livez',
    id: 'livez',
    summary: 'Whether the process lives',
    access: 'open',
    answer: [text('ok')],
  },
  {
    method: 'get',
    path: '/readyz',
    id: 'readyz',
    summary: 'Whether the server takes requests',
    access: 'open',
    answer: [text('ok')],
  },
];

const OPERATOR: readonly Operation[] = [
  {
    method: 'get',
    path: '/stats',
    id: 'stats',
    summary: 'What was decided so far',
    access: 'password',
    answer: [json('Stats')],
  },
  {
    method: 'get',
    path: '/metrics',
    id: 'metrics',
    summary: 'The same for Prometheus',
    access: 'password',
    answer: [text("Prometheus's text format")],
  },
  {
    method: 'post',
    path: '/playground',
    id: 'playground',
    summary: 'A decision that the operator tries out',
    access: 'password',
    request: 'DecisionRequest',
    takesTimeout: true,
    answer: [json('DecisionResponse')],
    answerHeaders: TIMING,
  },
  {
    method: 'post',
    path: '/reload',
    id: 'reload',
    summary: 'Loads the model that the settings name now, and answers when it is the one that decides',
    access: 'password',
    answer: [json('Health')],
    accepted: 'Another reload is under way: this one follows it',
  },
  { method: 'get', path: '/', id: 'dashboard', summary: 'The dashboard', access: 'password', answer: [page] },
  { method: 'get', path: '/recipes', id: 'recipes', summary: 'The recipes', access: 'password', answer: [page] },
];

const API: readonly Operation[] = [
  {
    method: 'get',
    path: '/version',
    id: 'version',
    summary: 'The version of the server',
    access: 'open',
    answer: [json('Version')],
  },
  {
    method: 'get',
    path: '/openapi.json',
    id: 'openapi',
    summary: 'This document',
    access: 'open',
    answer: [{ type: JSON_TYPE, schema: Type.Object({ openapi: Type.Literal('3.1.0') }) }],
  },
  { method: 'get', path: '/docs', id: 'docs', summary: 'This document as a page', access: 'open', answer: [page] },
];

/** Every public route, by the part of the server that it belongs to. */
export const OPERATIONS: Readonly<Record<string, readonly Operation[]>> = {
  Decisions: DECISIONS,
  Health: HEALTH,
  Operator: OPERATOR,
  API,
};
