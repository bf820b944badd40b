/** `svc model pull`: fetches a model, checks and tries it, and keeps it for the next start. */
import { keptModels } from '../model/kept-models.ts';
import { openModelSource } from '../model/open-source.ts';
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
    if (found.sha256 === undefined) throw new Refusal(`${model}: lies on this machine already`);
    await source.accept(found);
    const kept = (await keptModels(config)).find(({ sha256 }) => sha256 === found.sha256);
    if (kept === undefined) throw new Refusal(`${source.source}: was lost from the cache`);
    progress.end();
    const pulled = { ...kept, source: found.source };
    stdout.write(json ? `${JSON.stringify(summaryJson(pulled), null, 2)}\n` : summaryText(pulled, progress.others));
  } finally {
    progress.end();
  }
}
