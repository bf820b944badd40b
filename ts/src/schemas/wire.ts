/** The bodies that the shell itself writes. Decision requests and answers belong to the engine. */
import Type, { type Static } from 'typebox';

/** The model name in every answer, regardless of the loaded model. */
export const MODEL_NAME = 'svc';

/** The body of an error for a caller that accepts only JSON. */
export const ErrorBodySchema = Type.Object({
  error: Type.Object({ code: Type.Integer({ description: 'the HTTP status' }), message: Type.String() }),
  detail: Type.Object({ error_type: Type.String({ description: 'a stable code' }), message: Type.String() }),
});

/** The body of an error of `POST /v1/decisions`, in the format of OpenAI. */
export const OpenAiErrorSchema = Type.Object({
  error: Type.Object({
    message: Type.String(),
    type: Type.Enum(['invalid_request_error', 'server_error']),
    param: Type.Union([Type.String({ description: 'the part of the request that is wrong' }), Type.Null()]),
    code: Type.String({ description: 'a stable code' }),
  }),
});

export type OpenAiError = Static<typeof OpenAiErrorSchema>;

/** The body of a 401 for the API key. */
export const UnauthorizedBodySchema = Type.Object({ error: Type.Literal('missing or wrong API key') });

/** The answer of `GET /v1/models/{id}`: a model in the format of OpenAI. */
export const ModelSchema = Type.Object({
  id: Type.Literal(MODEL_NAME),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'when the model was loaded, in seconds since 1970' }),
  owned_by: Type.Literal(MODEL_NAME),
});

export type Model = Static<typeof ModelSchema>;

/** The answer of `GET /version`. */
export const VersionSchema = Type.Object({ version: Type.String({ description: 'of the server' }) });

/** The answer of `GET /v1/models`: in the format of this API and in that of OpenAI. */
export const ModelsSchema = Type.Object({
  models: Type.Array(
    Type.Object({
      name: Type.Literal(MODEL_NAME),
      description: Type.String(),
      release_date: Type.String({ format: 'date', description: 'the day on which the model was loaded' }),
    }),
  ),
  object: Type.Literal('list'),
  data: Type.Array(ModelSchema),
});

export type Models = Static<typeof ModelsSchema>;
