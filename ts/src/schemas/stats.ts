/** The answer of `GET /stats`. */
import Type, { type Static, type TSchema } from 'typebox';
import { HealthSchema } from './health.ts';

const Count = Type.Integer({ minimum: 0 });
const Milliseconds = Type.Number({ minimum: 0 });
const Time = Type.String({ format: 'date-time' });

const PERCENTILES = { p50_ms: Milliseconds, p95_ms: Milliseconds, p99_ms: Milliseconds };

const perQuestionType = <T extends TSchema>(schema: T) => Type.Object({ choice: schema, score: schema, noul: schema });

const RecentSchema = Type.Object({
  time: Time,
  ms: Milliseconds,
  questions: Count,
  input_tokens: Count,
  status: Type.Integer({ description: 'the HTTP status; 499 is a caller who went away' }),
  error: Type.Optional(Type.String({ description: 'a stable code; absent when it was answered' })),
});

const IntervalSchema = Type.Object({
  time: Type.String({ format: 'date-time', description: 'when it began' }),
  requests: Count,
  errors: Count,
  ...PERCENTILES,
  encode_ms: Type.Number({ description: 'average' }),
  wait_ms: Type.Number({ description: 'average' }),
  run_ms: Type.Number({ description: 'average' }),
  waiting: Type.Integer({ description: 'requests that waited for the model when it ended' }),
});

const ExactnessSchema = Type.Enum(['exact', 'made exact', 'cannot be'], {
  description:
    'whether the 8-bit products of the model are exact on this processor: as they are, by unsigned weights, or not all of them',
});

/** The statistics. Counts are since the start; times are those of the decisions answered in the last five minutes. */
export const StatsSchema = Type.Object({
  uptime_seconds: Type.Number({ minimum: 0 }),
  version: Type.String({ description: 'of the server' }),
  api_key: Type.Boolean({ description: 'whether a decision needs the API key' }),
  device: HealthSchema.properties.device,
  requests: Type.Object({
    total: Count,
    errors: Count,
    questions: Count,
    input_tokens: Count,
    avg_ms: Milliseconds,
    ...PERCENTILES,
    max_ms: Milliseconds,
  }),
  queue: Type.Object({ running: Count, waiting: Count }),
  state_cache: Type.Object(
    { hits: Count, misses: Count, evictions: Count, entries: Count, bytes: Count, limit_bytes: Count },
    { description: 'what is kept of states that were read, counted in chunks since the model was loaded' },
  ),
  phases: Type.Object({
    encode: Type.Object(PERCENTILES),
    wait: Type.Object(PERCENTILES),
    run: Type.Object(PERCENTILES),
    total: Type.Object(PERCENTILES),
  }),
  per_question_type: perQuestionType(Count),
  confidence: perQuestionType(
    Type.Array(Count, {
      minItems: 10,
      maxItems: 10,
      description: 'answers with a confidence in each tenth from 0 to 1',
    }),
  ),
  series: Type.Array(IntervalSchema, { description: 'steps of five seconds, oldest first; the last is not over' }),
  recent: Type.Array(RecentSchema, { maxItems: 200, description: 'decision requests, newest first' }),
  model: Type.Object({ ...HealthSchema.properties, exactness: Type.Optional(ExactnessSchema) }),
});

export type StatsSnapshot = Static<typeof StatsSchema>;
