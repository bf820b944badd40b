/** `svc model pull`: fetches a model, checks and tries it, and keeps it for the next start. */
import { existsSync } from 'node:fs';
import { keptModels, type ModelSummary, pinnedSource } from '../model/kept-models.ts';
import { openModelSource } from '../model/open-source.ts';
import type { FoundModel } from '../model/source.ts';
import { Refusal } from '../refusal.ts';
import type { Flags } from '../settings/config.ts';
import { commandSettings } from './command-settings.ts';
import { summaryJson, summaryText } from './model-summary.ts';
import { PullProgress } from './pull-progress.ts';

export interface ModelPullFlags extends Flags {
  readonly json?: boolean;
}

/**
 * Resolves once the model is kept and its description is on stdout.
 *
 * @throws Refusal when the model cannot be had, or fails its trial.
 */
export async function modelPull(model: string, { json = false, ...flags }: ModelPullFlags): Promise<void> {
  const config = commandSettings({ ...flags, model });
  const { stderr, stdout } = process;
  const progress = new PullProgress({ isTerminal: stderr.isTTY, write: (text) => stderr.write(text) });
  try {
    const source = await openModelSource(config, progress);
    const found = await source.refresh(new AbortController().signal);
    if (found.sha256 === undefined) {
      throw new Refusal(
        `${model}: ${existsSync(found.folder) ? 'lies on this machine already' : 'no such model folder'}`,
      );
    }
    await source.accept(found);
    const kept = pulledModel(await keptModels(config), found);
    if (kept === undefined) throw new Refusal(`${source.source}: was lost from the cache`);
    progress.end();
    const pulled = { ...kept, source: found.source };
    stdout.write(json ? `${JSON.stringify(summaryJson(pulled), null, 2)}\n` : summaryText(pulled, progress.others));
  } finally {
    progress.end();
  }
}

/** Returns the pulled model. A cache that cannot be written may have it by the names of other sources alone. */
function pulledModel(models: readonly ModelSummary[], found: FoundModel): ModelSummary | undefined {
  const same = models.filter(({ sha256 }) => sha256 === found.sha256);
  const named = same.find((model) => pinnedSource(model) === found.source);
  if (named !== undefined || same[0] === undefined) return named;
  const { licence: _, snapshot: __, revision: ___, ...unnamed } = same[0];
  return unnamed;
}
