/** The OpenAPI 3.1 document of the server, built from the schemas that the server itself uses. */
import Type, { type TSchema } from 'typebox';
import { DecisionSchemas, ref } from '../schemas/decision.ts';
import { HealthSchema } from '../schemas/health.ts';
import { DECISIONS_PATH, TIMEOUT_HEADER } from '../schemas/names.ts';
import { OpenAiDecisionSchemas } from '../schemas/openai-decision.ts';
import { StatsSchema } from '../schemas/stats.ts';
import {
  ErrorBodySchema,
  ModelSchema,
  ModelsSchema,
  OpenAiErrorSchema,
  UnauthorizedBodySchema,
  VersionSchema,
} from '../schemas/wire.ts';
import { packageVersion } from '../version.ts';
import { REQUEST_EXAMPLES } from './examples.ts';
import { type Access, type Content, OPERATIONS, type Operation } from './operations.ts';

const SCHEMAS = {
  ...DecisionSchemas,
  ...OpenAiDecisionSchemas,
  Models: ModelsSchema,
  Model: ModelSchema,
  Version: VersionSchema,
  Health: HealthSchema,
  Stats: StatsSchema,
  Error: ErrorBodySchema,
  OpenAiError: OpenAiErrorSchema,
  Unauthorized: UnauthorizedBodySchema,
};

const DESCRIPTION = `Answers typed questions about a text or a JSON value, with a probability for every possible answer.

Errors are one line of plain text. A caller that accepts \`application/json\`, and neither \`text/plain\` nor \`*/*\`, gets
JSON. Every answer carries \`x-request-id\`; with a 503 comes \`Retry-After\`.`;

const SECURITY: Readonly<Record<Access, readonly object[]>> = {
  open: [],
  key: [{ key: [] }],
  password: [{ password: [] }, { passwordInQuery: [] }],
};

const SECURITY_SCHEMES = {
  key: { type: 'http', scheme: 'bearer', description: 'The API key. Off on a loopback address unless one is set.' },
  password: { type: 'http', scheme: 'basic', description: 'The dashboard password, with any user name.' },
  passwordInQuery: { type: 'apiKey', in: 'query', name: 'password', description: 'The dashboard password.' },
};

/** The reasons for which any request may be refused, by status. */
const REFUSALS = {
  400: 'Not a request that can be answered',
  403: 'Not from there: the `Host`, or the web site that asks',
  408: 'Not arrived in time',
  431: 'Headers too large',
  500: 'A fault in the server',
  503: 'Not now; come again',
};

const TIMEOUT_PARAMETER = {
  name: TIMEOUT_HEADER,
  in: 'header',
  description: 'Milliseconds from the arrival of the request on for which the answer is of use.',
  schema: Type.Integer({ minimum: 1 }),
};

const BODY_REFUSALS = { 413: 'Too large', 415: 'Unknown `Content-Encoding`' };

/** Returns the document. */
export function openApiDocument(): object {
  const operations = Object.entries(OPERATIONS);
  const paths: Record<string, object> = {};
  for (const [tag, group] of operations) {
    for (const operation of group) paths[operation.path] = { [operation.method]: operationObject(operation, tag) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc',
      version: packageVersion(),
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: operations.map(([name]) => ({ name })),
    paths,
    components: { schemas: SCHEMAS, securitySchemes: SECURITY_SCHEMES },
  };
}

function operationObject(operation: Operation, tag: string): object {
  const { id, summary, description, access, request } = operation;
  const parameters = parametersOf(operation);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: SECURITY[access],
    ...(parameters.length > 0 && { parameters }),
    ...(request !== undefined && { requestBody: requestBodyObject(request) }),
    responses: responses(operation),
  };
}

function parametersOf({ takesTimeout, onlyId }: Operation): object[] {
  const id = { name: 'id', in: 'path', required: true, schema: Type.Enum([onlyId ?? '']) };
  return [...(takesTimeout ? [TIMEOUT_PARAMETER] : []), ...(onlyId === undefined ? [] : [id])];
}

function requestBodyObject(name: keyof typeof REQUEST_EXAMPLES): object {
  const content = { schema: ref(name), examples: REQUEST_EXAMPLES[name] };
  return { required: true, content: { 'application/json': content } };
}

function responses(operation: Operation): object {
  const { request, access, answer, accepted, answerHeaders, unavailable, path, onlyId } = operation;
  const refusals = Object.entries({
    ...REFUSALS,
    ...(request !== undefined && BODY_REFUSALS),
    ...(onlyId !== undefined && { 404: 'Another id' }),
  });
  const errors = path === DECISIONS_PATH ? OPENAI_ERRORS : ERRORS;
  return {
    200: {
      description: 'The answer',
      ...(answerHeaders && { headers: headers(answerHeaders) }),
      content: contentOf(answer),
    },
    ...(accepted !== undefined && { 202: { description: accepted, content: contentOf(answer) } }),
    ...Object.fromEntries(
      refusals.map(([status, description]) => [status, { description, content: contentOf(errors) }]),
    ),
    ...(access !== 'open' && { 401: unauthorized(access) }),
    ...(unavailable && { 503: { description: 'Not all is well', content: contentOf([unavailable, TEXT]) } }),
  };
}

const TEXT: Content = { type: 'text/plain', schema: Type.String() };
const ERRORS: readonly Content[] = [TEXT, { type: 'application/json', schema: ref('Error') }];
const OPENAI_ERRORS: readonly Content[] = [{ type: 'application/json', schema: ref('OpenAiError') }];

function unauthorized(access: Access): object {
  const content = access === 'key' ? [{ type: 'application/json', schema: ref('Unauthorized') }] : ERRORS;
  return {
    description: access === 'key' ? 'Missing or wrong API key' : 'Missing or wrong password',
    headers: headers({ 'WWW-Authenticate': Type.String() }),
    content: contentOf(content),
  };
}

function headers(schemas: Readonly<Record<string, TSchema>>): object {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, { required: true, schema }]));
}

function contentOf(contents: readonly Content[]): object {
  const entries = new Map<string, object>();
  for (const { type, schema, example } of contents) {
    if (!entries.has(type)) entries.set(type, { schema, ...(example !== undefined && { example }) });
  }
  return Object.fromEntries(entries);
}
