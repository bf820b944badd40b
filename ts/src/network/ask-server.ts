/** A decision that another server is asked for. */
import { errorCode } from '../files/system-error.ts';
import { decisionHeaders, type SetKey } from './decision-url.ts';
import { reach, serverName } from './reach.ts';

/** The request for a decision. */
export interface AskedDecision {
  readonly request: Buffer;
  readonly config: { readonly apiKey: readonly SetKey[] };
  readonly signal?: AbortSignal;
}

/** The body of a server's answer, or the reason why there is none. */
export type ServerAnswer = { readonly body: Buffer } | NoAnswer;

export interface NoAnswer {
  readonly body: undefined;
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The server and its words, in one line. */
  readonly reason: string;
}

/** The most characters that are shown of a server's words. */
const MAX_SHOWN = 300;

/** Resolves with the answer of the server whose `POST /v1/systemone` is at `endpoint`; it never rejects. */
export async function askServer(endpoint: URL, { request, config, signal }: AskedDecision): Promise<ServerAnswer> {
  const headers = { ...decisionHeaders(config), accept: 'application/json, text/plain' };
  const sent = { method: 'POST', body: request, headers, redirect: 'error' as const, ...(signal && { signal }) };
  try {
    const response = await reach(endpoint, sent);
    const body = Buffer.from(await response.arrayBuffer());
    if (response.ok && isDecision(body)) return { body };
    const { status } = response;
    return { body: undefined, status, reason: `${serverName(endpoint)} answers ${status}: ${wordsOf(response, body)}` };
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    const reason = `cannot reach ${serverName(endpoint)}: ${errorCode(cause) || String(cause)}`;
    return { body: undefined, status: 0, reason };
  }
}

function isDecision(body: Buffer): boolean {
  try {
    const { answers, usage } = JSON.parse(body.toString('utf8'));
    return typeof answers === 'object' && answers !== null && typeof usage === 'object';
  } catch {
    return false;
  }
}

/** Returns the words of a server in one line. A page is not shown: it comes from a server of another kind. */
function wordsOf(response: Response, body: Buffer): string {
  const [type = ''] = (response.headers.get('content-type') ?? '').split(';');
  if (response.ok || !/^(text\/plain|application\/json)$/.test(type.trim())) {
    return `no decision${type === '' ? '' : ` but ${type}`}; is this a server of svc?`;
  }
  const line = body.toString('utf8').trim().replace(/\s+/g, ' ');
  return line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}…` : line;
}
