/**
 * Every error that the server can give, and the one place where a code becomes an HTTP status.
 * `docs/errors.md` explains each of them; a test keeps the two lists equal.
 */
import type { Failure } from './engine/contract.ts';
import { DECISIONS_PATH } from './schemas/names.ts';
import type { OpenAiError } from './schemas/wire.ts';

/** The HTTP status of every error code. The engine makes the message of its own codes; the shell sends it as it is. */
export const ERROR_STATUS = {
  // Faults of the request, as the engine reads it.
  invalid_json: 400,
  nested_too_deep: 400,
  body_not_object: 400,
  duplicate_field: 400,
  state_missing: 400,
  states_missing: 400,
  states_not_list: 400,
  questions_missing: 400,
  questions_not_object: 400,
  duplicate_question: 400,
  question_not_object: 400,
  unknown_type: 400,
  instructions_not_text: 400,
  missing_criteria: 400,
  criteria_not_object: 400,
  criteria_not_list: 400,
  criterion_not_text: 400,
  duplicate_option: 400,
  too_few_options: 400,
  bad_field: 400,
  too_many_questions: 413,
  too_many_states: 413,
  too_many_tokens: 413,
  text_too_long: 413,
  run_too_long: 413,
  // Faults of the request, as HTTP.
  bad_request: 400,
  bad_body: 400,
  unauthorized: 401,
  wrong_password: 401,
  bad_host: 403,
  cross_site: 403,
  not_found: 404,
  method_not_allowed: 405,
  headers_timeout: 408,
  body_timeout: 408,
  body_too_large: 413,
  unsupported_encoding: 415,
  headers_too_large: 431,
  // The caller has gone, or takes nothing: this status is only counted and logged, and no answer is sent.
  cancelled: 499,
  answer_timeout: 499,
  // States of the server that pass.
  queue_full: 503,
  queue_timeout: 503,
  deadline_exceeded: 503,
  run_timeout: 503,
  closing: 503,
  loading: 503,
  load_failed: 503,
  draining: 503,
  // Faults of the server behind the gate.
  upstream_failed: 502,
  upstream_refused: 502,
  upstream_timeout: 504,
  gate_loop: 508,
  // Faults of the server itself.
  model_failed: 500,
  panicked: 500,
  reload_failed: 500,
  internal: 500,
  // Errors of the start-up: these end the process and never answer a request.
  runtime_not_found: 500,
  runtime_failed: 500,
  bad_threads: 500,
  bad_model: 500,
  bad_device: 500,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** The codes that end the process at its start. */
export const STARTUP_CODES: ReadonlySet<ErrorCode> = new Set([
  'runtime_not_found',
  'runtime_failed',
  'bad_threads',
  'bad_model',
  'bad_device',
]);

/** The shortest wait that a refused caller is told, in seconds, when no better one is known. */
const DEFAULT_RETRY_AFTER_SECONDS = 1;

interface FailureDetails {
  readonly cause?: Error | undefined;
  readonly param?: string | undefined;
}

/** An error whose message is meant for the caller, with the headers that its answer carries. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  /** The part of the request that is wrong, where that is known. */
  readonly param: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    { cause, param }: FailureDetails = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.param = param;
    this.headers = this.status === 503 ? { 'Retry-After': String(DEFAULT_RETRY_AFTER_SECONDS), ...headers } : headers;
  }

  get status(): number {
    return ERROR_STATUS[this.code];
  }
}

/** Returns the failure of a request whose caller has hung up, so that no caller gets its message. */
export function callerGone(): HttpFailure {
  return new HttpFailure('cancelled', 'the caller has gone');
}

/** Returns the error that answers a failure of the engine. A code that is not in the list is an internal error. */
export function engineFailure({ code, message, retryAfterSeconds, param, cause }: Failure): Error {
  if (!Object.hasOwn(ERROR_STATUS, code)) return new Error(`the engine gave the unknown code ${code}: ${message}`);
  // The message of a library is only for the log.
  const said = cause === undefined ? undefined : new Error(cause);
  return new HttpFailure(code as ErrorCode, message, retryAfter(retryAfterSeconds), { cause: said, param });
}

/** Returns the header that tells a caller when to come again: whole seconds, at least 1. Empty without `seconds`. */
function retryAfter(seconds: number | undefined): Record<string, string> {
  return seconds === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(seconds))) };
}

/** Returns `error` itself when it is meant for the caller, else the internal error that hides it. */
export function toHttpFailure(error: unknown): HttpFailure {
  return error instanceof HttpFailure ? error : new HttpFailure('internal', 'internal error');
}

/** The body of an error and its content type. */
interface ErrorBody {
  readonly type: string;
  readonly text: string;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** The parts of a request that decide how an error is written. */
interface ErrorReader {
  /** The `Accept` header. */
  readonly accept: string | undefined;
  readonly path: string | undefined;
}

/**
 * Returns the body of an error: one line of plain text, or JSON for a caller that accepts only that.
 * The body of a wrong API key is the same for everybody.
 */
export function errorBody(failure: HttpFailure, { accept, path }: ErrorReader): ErrorBody {
  const { code, message, status } = failure;
  if (code === 'unauthorized') return { type: JSON_TYPE, text: JSON.stringify({ error: message }) };
  if (path === DECISIONS_PATH) return { type: JSON_TYPE, text: JSON.stringify(openAiError(failure)) };
  if (!wantsJson(accept)) return { type: 'text/plain; charset=utf-8', text: message };
  const body = { error: { code: status, message }, detail: { error_type: code, message } };
  return { type: JSON_TYPE, text: JSON.stringify(body) };
}

function openAiError({ code, message, status, param }: HttpFailure): OpenAiError {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: param ?? null, code } };
}

/** Whether an `Accept` header names JSON, and no media range that plain text would satisfy. */
function wantsJson(accept: string | undefined): boolean {
  if (!accept?.toLowerCase().includes('application/json')) return false;
  const accepted = accept.toLowerCase().split(',').filter(isAcceptable).map(mediaRange);
  return accepted.includes('application/json') && !accepted.some((range) => TEXT_RANGES.has(range));
}

const TEXT_RANGES = new Set(['text/plain', 'text/*', '*/*']);

const mediaRange = (item: string) => (item.split(';', 1)[0] ?? '').trim();

/** Whether the caller accepts a media range; it does not accept one with the weight 0. */
const isAcceptable = (item: string) => !/;\s*q=0(?:\.0*)?\s*(?:;|$)/.test(item);
