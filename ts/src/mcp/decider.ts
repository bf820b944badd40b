/** The decisions behind the tools: made by an engine in this process, or by a server. */
import type { Engine } from '../engine/contract.ts';
import { errorCode } from '../files/system-error.ts';
import { decisionHeaders, decisionUrl, type SetKey } from '../network/decision-url.ts';
import { reach, serverName } from '../network/reach.ts';

/** The reason why there is no answer, in one line for the model that has asked. */
export class NoDecision extends Error {
  override readonly name = 'NoDecision';
}

/**
 * Returns the JSON text of the answer to the JSON text of a decision request.
 *
 * @throws NoDecision when there is none.
 */
export type Decide = (request: string, signal: AbortSignal) => Promise<string>;

/** Returns decisions of an engine that may still be loading. */
export function decideHere(loading: Promise<Engine>): Decide {
  return async (request, signal) => {
    const engine = await loading;
    const reply = await engine.decide(Buffer.from(request), { signal });
    if (reply.failure !== undefined) throw new NoDecision(reply.failure.message);
    return reply.body.toString('utf8');
  };
}

/**
 * Returns decisions of the server at `url`.
 *
 * @throws Refusal when `url` is no address.
 */
export function decideThere(url: string, config: { readonly apiKey: readonly SetKey[] }): Decide {
  const endpoint = decisionUrl(url);
  const headers = { ...decisionHeaders(config), accept: 'application/json, text/plain' };
  return async (request, signal) => {
    const sent = { method: 'POST', body: Buffer.from(request), headers, redirect: 'error' as const, signal };
    const response = await reach(endpoint, sent).catch((error: unknown) => {
      const cause = error instanceof Error ? error.cause : undefined;
      throw new NoDecision(`cannot reach ${serverName(endpoint)}: ${errorCode(cause) || String(cause ?? error)}`);
    });
    const text = await response.text();
    if (response.ok) return text;
    throw new NoDecision(`${serverName(endpoint)} answers ${response.status}: ${text.trim()}`);
  };
}
