/** The settings of `svc.json`: names, types, ranges, defaults, and their effects. */
import Type, { type Static, type TSchema } from 'typebox';

const bytes = (value: number, description: string) =>
  Type.Integer({ minimum: 1, maximum: 2 ** 40, default: value, description });
const count = (value: number, description: string) =>
  Type.Integer({ minimum: 1, maximum: 1_000_000, default: value, description });
const milliseconds = (minimum: 0 | 1, value: number, description: string) =>
  Type.Integer({ minimum, maximum: 2 ** 31 - 1, default: value, description });
const oneOf = (names: readonly string[], value: string, description: string) =>
  Type.Union(
    names.map((name) => Type.Literal(name)),
    { default: value, description },
  );

const DEVICES = ['auto', 'cpu', 'gpu', 'cuda', 'coreml', 'directml'];
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const LOG_FORMATS = ['auto', 'json', 'pretty'];
const STATE_CACHE_PRECISIONS = ['fp32', 'fp16'];

/** Every key of `svc.json`. An unknown key causes a warning; with a wrong value the server refuses to start. */
export const ConfigSchema = Type.Object({
  generated: Type.Boolean({
    default: false,
    description: 'True in the file that the server made itself: it holds defaults, nobody chose them.',
  }),
  listen: Type.String({
    default: '127.0.0.1:21118',
    wanted: 'HOST:PORT or unix:/PATH, such as 127.0.0.1:21118, [::1]:21118 or unix:/run/svc/svc.sock',
    description: 'Listen address. Port 0 takes a free one. Beyond loopback the API key is required.',
  }),
  listen_mode: Type.String({
    pattern: '^0?[67][0-7]{2}$',
    default: '0600',
    wanted: 'the mode of a file, such as 0600 or 0660',
    description: 'Mode of the unix socket in `listen`. If others than its owner may connect, the API key is required.',
  }),
  device: oneOf(DEVICES, 'auto', 'Compute device. `auto` takes a GPU only if it answers as the CPU does.'),
  model: Type.String({
    default: '',
    description:
      'Model folder, archive, or where one is fetched from: hf:org/name, https://… or s3://bucket/prefix. Empty takes the embedded one.',
  }),
  model_file: Type.String({
    pattern: '^((onnx/)?[^/\\\\]+\\.onnx)?$',
    default: '',
    wanted: 'a graph of the model, such as onnx/model_int8.onnx',
    description: 'Which graph of several a model from a hub (hf:…) has; empty takes the one that suits the device.',
  }),
  model_sha256: Type.String({
    pattern: '^([0-9a-fA-F]{64})?$',
    default: '',
    wanted: '64 hexadecimal digits',
    description: 'The sha256 that the archive or the manifest of the model must have; empty takes any.',
  }),
  model_allow_http: Type.Boolean({
    default: false,
    description: 'Lets a model come over plain HTTP from another machine, unprotected on its way.',
  }),
  model_max_bytes: bytes(8 * 2 ** 30, 'Bytes of a model that is fetched, unpacked. A larger one is not taken.'),
  model_fetch_ms: milliseconds(1, 3_600_000, 'Longest time to fetch a model.'),
  model_cache_bytes: bytes(16 * 2 ** 30, 'Bytes of fetched models kept on this disk; those in use are never removed.'),
  refresh_minutes: Type.Integer({
    minimum: 0,
    maximum: 10_080,
    default: 60,
    description: 'Time between two looks for a newer model where it is fetched from; 0 looks for none.',
  }),
  s3_endpoint: Type.String({
    pattern: '^(https?://[^\\s/?#@]+/?)?$',
    default: '',
    wanted: 'a URL without a path, such as https://s3.example.com',
    description: 'S3-compatible server; empty takes the one of the region.',
  }),
  s3_region: Type.String({
    default: '',
    description: "Region of the bucket; empty takes that of the AWS client's settings.",
  }),
  s3_path_style: Type.Boolean({
    default: false,
    description:
      'Puts the bucket into the path of a URL instead of its host name, as most servers but that of AWS want.',
  }),
  runtime: Type.String({
    default: '',
    description: 'ONNX Runtime library, 1.23 or newer; empty takes the one that came along.',
  }),
  threads: Type.Integer({
    minimum: 0,
    maximum: 256,
    default: 0,
    description: 'Intra-op threads; 0 takes the CPU limit of the container, else the cores of the machine.',
  }),
  parallel: Type.Union([Type.Integer({ minimum: 1, maximum: 256 }), Type.Literal('auto')], {
    default: 1,
    wanted: 'a whole number from 1 to 256, or auto',
    description:
      'Requests that may be on the model at once, which divide the cores; `auto`: one for each thread. Memory grows with it.',
  }),
  truncate: Type.Union([Type.Literal('count'), Type.Literal('error')], {
    default: 'count',
    description: "What a text longer than the model's window gets: cut and counted in the answer, or 413.",
  }),
  api_key: Type.Union([Type.String(), Type.Array(Type.String())], {
    default: '',
    wanted: 'a string or a list of strings',
    description: 'Decision API key, at least 16 characters; a list while a key is changed.',
  }),
  password: Type.String({ default: '', description: 'Dashboard password.' }),
  allow_no_api_key: Type.Boolean({ default: false, description: 'Turns the API key off, on a public address too.' }),
  allow_no_password: Type.Boolean({ default: false, description: 'Turns the dashboard password off.' }),
  cors_origins: Type.Array(Type.String({ pattern: '^[a-z][a-z0-9+.-]*://[^\\sA-Z/?#@]+$' }), {
    default: [],
    wanted: 'a list of origins, such as https://app.example.com',
    description: 'Web pages that may call the server from a browser.',
  }),
  allowed_hosts: Type.Array(Type.String({ pattern: '^[^\\s/]+$' }), {
    default: [],
    wanted: 'a list of host names',
    description: 'Names in the `Host` header that a server on a loopback address takes beside its own.',
  }),
  log_level: oneOf(LOG_LEVELS, 'info', 'The least serious thing that is logged.'),
  log_format: oneOf(LOG_FORMATS, 'auto', 'What a line of the log is. `auto`: `pretty` on a terminal, else `json`.'),
  max_body_bytes: bytes(8 * 2 ** 20, 'Bytes of one decision request, decompressed. Memory grows with it.'),
  max_questions: count(1024, 'Questions in one request. One request holds the model for all of them.'),
  max_tokens: Type.Integer({
    minimum: 1,
    maximum: 2 ** 31 - 1,
    default: 131_072,
    description: 'Encoded tokens in one request, one state of a batch. Time on the model grows with it.',
  }),
  max_batch_states: count(10_000, 'States in one batch.'),
  max_batch_body_bytes: bytes(64 * 2 ** 20, 'Bytes of one batch request, decompressed.'),
  max_queue: count(512, 'Requests that may wait for the model. Raising it makes waits longer before 503.'),
  max_queue_bytes: bytes(
    64 * 2 ** 20,
    'Bytes of the requests that arrive, and of those that wait for the model; as many again of batches.',
  ),
  request_timeout_ms: milliseconds(1, 60_000, 'Longest wait for the model before 503.'),
  max_run_ms: milliseconds(
    1,
    60_000,
    'Longest time of one request for encoding and on the model, checked between its runs.',
  ),
  state_cache_bytes: Type.Integer({
    minimum: 0,
    maximum: 2 ** 40,
    default: 64 * 2 ** 20,
    description: 'Bytes of states kept for the next question about them; 0 keeps none.',
  }),
  state_cache_precision: oneOf(
    STATE_CACHE_PRECISIONS,
    'fp32',
    'How exactly states are kept. `fp16` takes half the bytes and may move a probability a little, kept or not.',
  ),
  drain_delay_ms: milliseconds(0, 0, 'After a stop signal, how long new requests are still taken.'),
  drain_ms: milliseconds(0, 15_000, 'After that, how long running and queued requests have to finish.'),
});

/** The contents of `svc.json` once every default is filled in. */
export type ConfigFile = Static<typeof ConfigSchema>;

export type ConfigKey = keyof ConfigFile;

/** The schema of one setting, with the parts that messages are made from. */
type SettingSchema = TSchema & {
  readonly default: unknown;
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly { readonly const?: string; readonly type?: string }[];
  readonly wanted?: string;
};

/** Returns the schema of one setting. */
export function settingSchema(key: ConfigKey): SettingSchema {
  return ConfigSchema.properties[key] as TSchema as SettingSchema;
}

/**
 * Returns the condition that a setting must meet, such as `a whole number from 0 to 256`: the end of the message that
 * refuses another value.
 */
export function wantedValue(key: ConfigKey): string {
  const { type, wanted, minimum, maximum, anyOf } = settingSchema(key);
  if (wanted !== undefined) return wanted;
  if (anyOf !== undefined) return `one of ${anyOf.map((choice) => choice.const).join(', ')}`;
  if (type === 'integer') return `a whole number from ${minimum} to ${maximum}`;
  return type === 'boolean' ? 'true or false' : 'a string';
}
