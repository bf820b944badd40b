/**
 * The settings of the hub that models come from by name. They are in the variables that its other clients take, so a
 * machine that is set up for one of those is set up for this program too.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { Secret } from './secret.ts';

const PUBLIC_HUB = 'https://huggingface.co';
/** The values that mean yes, in any case, as the hub's own client reads them. */
const YES: ReadonlySet<string> = new Set(['1', 'ON', 'YES', 'TRUE']);

export interface HubSettings {
  /** The address of the hub as it was set: `HF_ENDPOINT`, else that of the public hub. It is not checked yet. */
  readonly endpoint: string;
  /** The token of `HF_TOKEN`. */
  readonly token: Secret | undefined;
  /** Whether the hub must not be asked, but only its cache: `HF_HUB_OFFLINE`. */
  readonly isOffline: boolean;
  /** Absolute path of the hub's cache, which its other clients share. */
  readonly cache: string;
}

/** The variables of the hub, and the one of the folder for caches. */
export interface HubVariables {
  readonly [name: string]: string | undefined;
  readonly HF_ENDPOINT?: string | undefined;
  readonly HF_TOKEN?: string | undefined;
  readonly HF_HUB_OFFLINE?: string | undefined;
  readonly HF_HOME?: string | undefined;
  readonly HF_HUB_CACHE?: string | undefined;
  readonly HUGGINGFACE_HUB_CACHE?: string | undefined;
  readonly XDG_CACHE_HOME?: string | undefined;
}

interface Places {
  readonly cwd: string;
  /** Absolute path of `$SVC_DATA`, which has the cache where no variable of the hub says another place. */
  readonly dataDir: string | undefined;
}

/** Returns the settings of the hub in `env`. An empty variable counts as unset. */
export function hubSettings(env: HubVariables, places: Places): HubSettings {
  const token = env.HF_TOKEN?.replace(/[\r\n]/g, '').trim();
  return Object.freeze({
    endpoint: (env.HF_ENDPOINT?.trim() || PUBLIC_HUB).replace(/\/+$/, ''),
    token: token ? new Secret(token, 'HF_TOKEN') : undefined,
    isOffline: YES.has((env.HF_HUB_OFFLINE ?? '').trim().toUpperCase()),
    cache: cacheFolder(env, places),
  });
}

function cacheFolder(env: HubVariables, { cwd, dataDir }: Places): string {
  const cache = env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE;
  if (cache) return resolve(cwd, expanded(cache, env));
  if (env.HF_HOME) return resolve(cwd, expanded(env.HF_HOME, env), 'hub');
  if (dataDir !== undefined) return join(dataDir, 'huggingface', 'hub');
  return resolve(cwd, env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface', 'hub');
}

/** Returns a path with `~` and variables replaced, as the hub's own client replaces them. */
function expanded(path: string, env: HubVariables): string {
  const atHome = path === '~' || /^~[/\\]/.test(path) ? homedir() + path.slice(1) : path;
  return atHome.replace(/\$(\w+|\{\w+\})/g, (text, name: string) => env[name.replace(/[{}]/g, '')] ?? text);
}
