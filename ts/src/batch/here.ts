/** Decisions by the engine in this process. */
import { setMaxListeners } from 'node:events';
import type { Config } from '../config.ts';
import { loadConfiguredEngine } from '../model/load.ts';
import { Refusal } from '../refusal.ts';
import { type Decider, type DecisionText, type Outcome, requestBody } from './decider.ts';

/** Nobody else asks this engine, so that its line is as long as we make it and nobody waits too long in it. */
const OWN_LINE = { maxQueue: 1_000_000, maxQueueBytes: 2 ** 40, requestTimeoutMs: 2 ** 31 - 1 };

/**
 * The engine that `config` names.
 *
 * @throws Refusal when it cannot be loaded.
 */
export async function decideHere(config: Config, stop: AbortSignal): Promise<Decider> {
  const { engine } = await loadConfiguredEngine({ ...config, ...OWN_LINE });
  const { digest, threads } = engine.info();
  // Each request of the line listens to it.
  setMaxListeners(0, stop);
  return {
    window: 8 + 4 * threads,
    model: `files ${digest}`,
    async decide(request: DecisionText): Promise<Outcome> {
      const reply = await engine.decide(requestBody(request), { signal: stop });
      if (reply.failure === undefined) return { body: reply.body.toString('utf8') };
      stop.throwIfAborted();
      const { code, message } = reply.failure;
      if (code === 'closing' || code === 'cancelled') throw new Refusal(message);
      return { problem: { code, message } };
    },
    close: () => engine.close(),
  };
}
