/** One request to a server, and what comes back. */
import { isUtf8 } from 'node:buffer';
import { errorCode } from '../exclusive-file.ts';
import { STATE_HEADER } from '../state-header.ts';
import type { Problem } from './row.ts';

/** What a server is sent. */
export interface Sent {
  readonly body: Buffer;
  /** The digest of the state. */
  readonly state: string;
  /** Of a probe, by which the server's log tells it from a row. */
  readonly id?: string;
}

/** A response as it came; status 0 when there was none. */
export interface Received {
  readonly status: number;
  readonly text: string;
  readonly retryAfterMs: number | undefined;
}

export interface Posting {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Ends it before its time. */
  readonly controller: AbortController;
}

/** Statuses that say something of the request itself. */
export const BAD_REQUEST: ReadonlySet<number> = new Set([400, 413, 422]);

/** Statuses that pass; 0 stands for no response. */
export const BUSY: ReadonlySet<number> = new Set([0, 408, 425, 429, 502, 503, 504]);

/** More than the answer to as many questions and options as a server takes: an answer without an end stops here. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const LONGEST_RETRY_AFTER_MS = 3_600_000;

/** What the server says; status 0 when it says nothing in time, breaks off, or is left before. */
export async function post(sent: Sent, { url, headers, timeoutMs, controller }: Posting): Promise<Received> {
  const silence = new Error(`no answer in ${Math.round(timeoutMs / 1000)} s`);
  const timer = setTimeout(() => controller.abort(silence), timeoutMs);
  try {
    const response = await fetch(url, {
      method: 'POST',
      body: sent.body,
      headers: { ...headers, [STATE_HEADER]: sent.state, ...(sent.id && { 'x-request-id': sent.id }) },
      redirect: 'manual',
      signal: controller.signal,
    });
    const retryAfterMs = retryAfter(response.headers.get('retry-after'));
    return { status: response.status, text: await textOf(response), retryAfterMs };
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

/** The body as text; nothing where an answer is no UTF-8, so that no letter stands in the place of what was sent. */
async function textOf({ status, body }: Response): Promise<string> {
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

/** Seconds, or a date; undefined when it is neither. Nobody is waited for longer than an hour. */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), LONGEST_RETRY_AFTER_MS);
}

/** What a response that is no answer says; the text of one with status 200 is what is wrong with it. */
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
