/** `svc model list`: the models from elsewhere that are kept on this disk. */
import { printable } from '../log/printable.ts';
import { keptModels } from '../model/kept-models.ts';
import type { Flags } from '../settings/config.ts';
import { commandSettings } from './command-settings.ts';
import { summaryJson, summaryTable } from './model-summary.ts';

export interface ModelListFlags extends Flags {
  readonly json?: boolean;
}

/** Resolves once the list is on stdout. */
export async function modelList({ json = false, ...flags }: ModelListFlags): Promise<void> {
  const config = commandSettings(flags);
  const models = await keptModels(config);
  if (json) process.stdout.write(`${JSON.stringify(models.map(summaryJson), null, 2)}\n`);
  else if (models.length === 0) process.stdout.write(`no models are kept in ${printable(config.modelCache)}\n`);
  else process.stdout.write(summaryTable(models));
}
