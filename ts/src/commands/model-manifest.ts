/** `svc model manifest`: the list of a model folder's files, which a source of models offers next to them. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { defaultModel } from '../engine/addon.ts';
import { sha256Of } from '../files/sha256.ts';
import { familyOf } from '../model/family.ts';
import { manifestText } from '../model/manifest.ts';
import { Refusal } from '../refusal.ts';

/**
 * Resolves once the manifest is on stdout, and its sha256, which `model_sha256` can name, on stderr.
 *
 * @param dir - The model folder; the embedded model's by default.
 * @throws Refusal when `dir` is no model folder; EngineError when there is no embedded model.
 */
export async function modelManifest(dir = defaultModel()): Promise<void> {
  const config = await stat(join(dir, 'config.json')).catch(() => undefined);
  if (!config?.isFile() && (await familyOf(dir)) === undefined)
    throw new Refusal(`${join(resolve(dir), 'config.json')}: no such file`);
  const text = await manifestText(dir);
  process.stdout.write(text);
  process.stderr.write(`sha256 ${sha256Of(text)}\n`);
}
