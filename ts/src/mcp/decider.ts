/** The decisions behind the tools: made by an engine in this process, or by a server. */
import type { Engine } from '../engine/contract.ts';
import { askServer } from '../network/ask-server.ts';
import { decisionUrl, type SetKey } from '../network/decision-url.ts';

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
  return async (request, signal) => {
    const answer = await askServer(endpoint, { request: Buffer.from(request), config, signal });
    if (answer.body === undefined) throw new NoDecision(answer.reason);
    return answer.body.toString('utf8');
  };
}
