/** The answering side of `svc ask`: the engine in this process, or a server. */
import { ERROR_STATUS } from '../errors.ts';
import { errorCode } from '../files/system-error.ts';
import { loadConfiguredEngine } from '../model/load.ts';
import { decisionHeaders, decisionUrl } from '../network/decision-url.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';

/** The refusal of a request that is wrong itself, so that the message is about the file or the line it came from. */
export class WrongRequest extends Refusal {}

export interface Asker {
  /**
   * Resolves with the body of the answer to a request's body.
   *
   * @throws WrongRequest when the request is wrong; Refusal when there is no answer for another reason.
   */
  ask(request: Buffer): Promise<Buffer>;
  close(): Promise<void>;
}

/** The statuses of a request that is wrong itself: it would be wrong anywhere. */
const OF_REQUEST: ReadonlySet<number> = new Set([400, 413, 422]);

/** The most characters that are shown of what a server says. */
const MAX_SHOWN = 300;

/**
 * Returns the asker of the server at `url`, or without one the asker of the configured model, which is then loaded.
 *
 * @throws Refusal when the model cannot be loaded, or the address is none.
 */
export async function openAsker(config: Config, url: string | undefined): Promise<Asker> {
  if (url !== undefined) return serverAsker(config, decisionUrl(url));
  const { engine } = await loadConfiguredEngine(config);
  return {
    async ask(request) {
      const reply = await engine.decide(request);
      if (reply.failure === undefined) return reply.body;
      const { code, message } = reply.failure;
      const status = (ERROR_STATUS as Readonly<Record<string, number>>)[code] ?? 500;
      throw new (OF_REQUEST.has(status) ? WrongRequest : Refusal)(message);
    },
    close: () => engine.close(),
  };
}

function serverAsker(config: Config, endpoint: URL): Asker {
  const headers = { ...decisionHeaders(config), accept: 'application/json, text/plain' };
  return {
    async ask(request) {
      const response = await post(endpoint, { method: 'POST', body: request, headers, redirect: 'error' });
      const body = Buffer.from(await response.arrayBuffer());
      if (response.ok && isDecision(body)) return body;
      const Kind = OF_REQUEST.has(response.status) ? WrongRequest : Refusal;
      throw new Kind(`${endpoint.origin} answers ${response.status}: ${said(response, body)}`);
    },
    close: async () => {},
  };
}

async function post(endpoint: URL, request: RequestInit): Promise<Response> {
  try {
    return await fetch(endpoint, request);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    throw new Refusal(`cannot reach ${endpoint.origin}: ${errorCode(cause) || String(cause ?? error)}`);
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
function said(response: Response, body: Buffer): string {
  const [type = ''] = (response.headers.get('content-type') ?? '').split(';');
  if (response.ok || !/^(text\/plain|application\/json)$/.test(type.trim())) {
    return `no decision${type === '' ? '' : ` but ${type}`}; is this a server of svc?`;
  }
  const line = body.toString('utf8').trim().replace(/\s+/g, ' ');
  return line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}…` : line;
}
