/** One request to a server, and its response. */
import { isUtf8 } from 'node:buffer';
import { errorCode } from '../files/system-error.ts';
import { reach } from '../network/reach.ts';
import { retryAfterMsIn } from '../network/retry-after.ts';
import { STATE_HEADER } from '../network/state-header.ts';
import type { Problem } from './row.ts';

/** A request for a server. */
export interface Sent {
  readonly body: Buffer;
  /** The digest of the state. */
  readonly state: string;
  /** The request id of a probe, which tells it from a row in the server's log; undefined for a row. */
  readonly id?: string;
}

/** A response as it was received; its status is 0 if there was none. */
export interface Received {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number | undefined;
}

interface Posting {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** The controller that ends the request before its timeout. */
  readonly controller: AbortController;
}

/** The statuses that blame the request itself. */
export const BAD_REQUEST: ReadonlySet<number> = new Set([400, 413, 422]);

/** The statuses of a temporary failure; 0 stands for no response. */
export const BUSY: ReadonlySet<number> = new Set([0, 408, 425, 429, 502, 503, 504]);

/**
 * This is more than the answer to the most questions and options that a server takes; the limit stops an endless
 * answer.
 */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const LONGEST_RETRY_AFTER_MS = 3_600_000;

/**
 * Sends the request and returns the server's response; its status is 0 if the server does not answer in time, breaks
 * off, or the request is aborted.
 */
export async function post(sent: Sent, { url, headers, timeoutMs, controller }: Posting): Promise<Received> {
  const silence = new Error(`no answer in ${Math.round(timeoutMs / 1000)} s`);
  const timer = setTimeout(() => controller.abort(silence), timeoutMs);
  try {
    const response = await reach(url, {
      method: 'POST',
      body: sent.body,
      headers: { ...headers, [STATE_HEADER]: sent.state, ...(sent.id && { 'x-request-id': sent.id }) },
      redirect: 'manual',
      signal: controller.signal,
    });
    const retryAfterMs = restMsIn(response.headers);
    return { status: response.status, text: await bodyText(response), retryAfterMs };
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    return { status: 0, text: reasonOf(cause), retryAfterMs: undefined };
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = errorCode(cause);
  return code === 'UND_ERR_SOCKET' ? 'the connection broke off' : code || cause.message;
}

/**
 * Returns the body as text; an empty text for an answer that is not UTF-8, because decoding would replace some of its
 * bytes.
 */
async function bodyText({ status, body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) throw new Error('an answer of more than 64 MiB');
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  return status === 200 && !isUtf8(bytes) ? '' : new TextDecoder().decode(bytes);
}

/** Returns the milliseconds after which a server may be asked again, one hour at most; undefined if it says nothing. */
function restMsIn(headers: Headers): number | undefined {
  const ms = retryAfterMsIn(headers.get('retry-after'));
  return ms && Math.min(ms, LONGEST_RETRY_AFTER_MS);
}

/**
 * Returns the problem in a response that is not a valid answer; if the status is 200, `text` already holds the fault.
 */
export function problemOf({ status, text }: Received): Problem {
  if (status === 200) return { code: 'bad_answer', message: `wrong answer: ${text}` };
  try {
    const { detail } = JSON.parse(text) as {
      readonly detail: { readonly error_type: string; readonly message: string };
    };
    return { code: String(detail.error_type), message: String(detail.message) };
  } catch {
    const code = status === 0 ? 'no_answer' : `http_${status}`;
    return { code, message: text.trim().slice(0, 500).replaceAll(/\s+/g, ' ') || code };
  }
}
