/** The checks of the arguments that other programs give: each error names the argument, and says what it must be. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';

/** A value whose type nobody has checked, as a program in JavaScript gives it. */
type Unchecked = unknown;

/**
 * Returns the absolute path of a model folder. An empty text is for the caller to replace.
 *
 * @throws TypeError when the value is no path, or names a model that only a server fetches or unpacks.
 */
export function modelPath(model: Unchecked): string {
  if (typeof model !== 'string') throw new TypeError('model: must be a string, the path of a model folder');
  const isAddress = /^([a-z][a-z0-9+.-]+:\/\/|hf:)/i.test(model);
  const isArchive = /\.(tar\.gz|tgz|zip)$/i.test(model) && !isFolder(model);
  if (isAddress || isArchive) {
    throw new TypeError(`model: must be a model folder; ${JSON.stringify(model)} is one that only svc serve can take`);
  }
  return resolve(model);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Returns a request as JSON text.
 *
 * @throws TypeError when it is no object, or JSON cannot hold it.
 */
export function requestJson(request: Unchecked): string {
  if (typeof request !== 'object' || request === null) {
    throw new TypeError('request: must be an object with a state and questions');
  }
  const { state, questions } = request as { readonly state?: unknown; readonly questions?: unknown };
  try {
    return JSON.stringify({ state, questions });
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    throw new TypeError(`request: cannot be written as JSON: ${why}`, { cause: error });
  }
}

/**
 * Returns the bytes of a request's body.
 *
 * @throws TypeError when the body is neither text nor bytes.
 */
export function bodyBytes(body: Unchecked): Buffer {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  throw new TypeError('body: must be a string or a Uint8Array, the JSON text of a request');
}

/**
 * Returns the signal of the options of a call.
 *
 * @throws TypeError when the options are no object, or the signal is none.
 */
export function callSignal(options: Unchecked): AbortSignal | undefined {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError('options: must be an object, such as { signal }');
  }
  const { signal } = options as { readonly signal?: unknown };
  if (signal === undefined || isSignal(signal)) return signal;
  throw new TypeError('options.signal: must be an AbortSignal');
}

/** Whether a value is a signal: one of another realm, such as a test runner's, is none by its class. */
function isSignal(value: unknown): value is AbortSignal {
  const { aborted, addEventListener, throwIfAborted } = Object(value) as Partial<AbortSignal>;
  return typeof aborted === 'boolean' && [addEventListener, throwIfAborted].every((one) => typeof one === 'function');
}
