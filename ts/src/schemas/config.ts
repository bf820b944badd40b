/** The settings of `svc.json`: names, types, ranges and defaults. */
import Type, { type Static } from 'typebox';

const bytes = (value: number) => Type.Integer({ minimum: 1, maximum: 2 ** 40, default: value });
const milliseconds = (value: number) => Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1, default: value });

/** Every key of `svc.json`. A key that is not here is a warning, a wrong value refuses to start. */
export const ConfigSchema = Type.Object({
  generated: Type.Boolean({ default: false }),
  listen: Type.String({ default: '127.0.0.1:21118' }),
  device: Type.Union(
    ['auto', 'cpu', 'gpu', 'cuda', 'coreml', 'directml'].map((name) => Type.Literal(name)),
    { default: 'auto' },
  ),
  model: Type.String({ default: '' }),
  runtime: Type.String({ default: '' }),
  threads: Type.Integer({ minimum: 0, maximum: 256, default: 0 }),
  truncate: Type.Union([Type.Literal('count'), Type.Literal('error')], { default: 'count' }),
  api_key: Type.Union([Type.String(), Type.Array(Type.String())], { default: '' }),
  password: Type.String({ default: '' }),
  allow_no_api_key: Type.Boolean({ default: false }),
  allow_no_password: Type.Boolean({ default: false }),
  cors_origins: Type.Array(Type.String(), { default: [] }),
  allowed_hosts: Type.Array(Type.String(), { default: [] }),
  log_level: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((name) => Type.Literal(name)),
    { default: 'info' },
  ),
  max_body_bytes: bytes(8 * 2 ** 20),
  max_questions: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1024 }),
  max_tokens: Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1, default: 131_072 }),
  max_batch_states: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 10_000 }),
  max_batch_body_bytes: bytes(64 * 2 ** 20),
  max_queue: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 512 }),
  max_queue_bytes: bytes(64 * 2 ** 20),
  request_timeout_ms: milliseconds(60_000),
  max_run_ms: milliseconds(60_000),
  state_cache_bytes: Type.Integer({ minimum: 0, maximum: 2 ** 40, default: 64 * 2 ** 20 }),
  drain_delay_ms: Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, default: 0 }),
  drain_ms: Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, default: 15_000 }),
});

export type ConfigFile = Static<typeof ConfigSchema>;
