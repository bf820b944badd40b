/** Check of the hub that a model comes from by name. The hub itself is not asked: loading the model does that. */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isHubName } from '../model/hub/name.ts';
import { publicSource } from '../model/location.ts';
import type { Config } from '../settings/config.ts';
import { type Finding, ok, warning } from './finding.ts';

/** Returns the findings about the hub; none where the model comes from elsewhere. */
export function checkHub({ model, modelCache, hub }: Pick<Config, 'model' | 'modelCache' | 'hub'>): Finding[] {
  if (!isHubName(model)) return [];
  const { endpoint, token, isOffline, cache } = hub;
  const asked = token === undefined ? 'asked without a token' : `asked with the token of ${token.origin}`;
  const how = isOffline ? 'not asked, since HF_HUB_OFFLINE is set' : asked;
  const findings = [ok('hub', `${publicSource(endpoint)}, ${how}; its files are kept in ${cache}`)];
  if (diskOf(cache) === diskOf(modelCache)) return findings;
  const message = `${cache} and ${modelCache} are on different disks, so a model takes its room on both`;
  return [...findings, warning('hub', message, 'put both on one: HF_HOME and SVC_DATA say where they are')];
}

/** Returns the number of the disk on which a folder is, or would be made. */
function diskOf(folder: string): number | undefined {
  try {
    return statSync(folder).dev;
  } catch {
    const above = dirname(folder);
    return above === folder ? undefined : diskOf(above);
  }
}
