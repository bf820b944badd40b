/** The trial of a model in an engine of its own, before it may answer anybody. */
import { loadEngine } from '../engine/addon.ts';
import type { Config } from '../settings/config.ts';
import { engineOptions } from './engine-options.ts';
import { tryReferences } from './references.ts';

/**
 * Tries a model folder in an engine of its own, and returns how many reference answers it has. The trial ends when
 * `signal` fires.
 *
 * @throws Refusal when the model gives another answer than a reference; EngineError when it cannot be loaded.
 */
export async function tryModel(config: Config, folder: string, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const engine = await loadEngine(engineOptions(config, folder));
  try {
    return await tryReferences(engine, folder, signal);
  } finally {
    await engine.close();
  }
}
