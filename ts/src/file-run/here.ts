/** Decisions by the engine in this process. */
import { setMaxListeners } from 'node:events';
import { loadConfiguredEngine } from '../model/load.ts';
import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { type Decider, type DecisionText, type Outcome, requestBody } from './decider.ts';

/**
 * The run is the only user of this engine, so the engine's queue may be as long as the run makes it, and no other
 * request waits too long in it.
 */
const OWN_LINE = { maxQueue: 1_000_000, maxQueueBytes: 2 ** 40, requestTimeoutMs: 2 ** 31 - 1 };

/**
 * Loads the engine that `config` names and returns a decider that asks it.
 *
 * @throws Refusal when the engine cannot be loaded.
 */
export async function engineDecider(config: Config, stop: AbortSignal): Promise<Decider> {
  const { engine } = await loadConfiguredEngine({ ...config, ...OWN_LINE });
  const { digest, threads } = engine.info();
  // Each queued request adds a listener to this signal, more than Node's warning limit.
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
