/** What holds in the container image beside the usual rules. */
import { Refusal } from './refusal.ts';

/** Where the server listens in the container when nobody says otherwise: a port of a container is published or not. */
export const CONTAINER_LISTEN = '0.0.0.0:21118';

/** A password that other machines can try has as many. */
export const MIN_EXPOSED_PASSWORD_CHARACTERS = 12;

/** What the rules look at, of the settings. */
export interface ContainerSettings {
  readonly apiKey: readonly { readonly origin: string }[];
  readonly password?: { readonly origin: string; readonly length: number } | undefined;
  readonly allowNoApiKey: boolean;
  readonly allowNoPassword: boolean;
  readonly file?: string | undefined;
  /** Whether the server made the file itself. */
  readonly generated: boolean;
}

/**
 * Checks that the credentials were chosen: the server in a container can be reached from outside, and what it would
 * generate is in a volume that few look into. A `svc.json` that the server made itself says nothing about that.
 *
 * @param isPublished - Whether `SVC_PASSWORD` is the published default, which counts as none.
 * @throws Refusal when one of them is missing and there is no `svc.json` of the user's, or the password is too short.
 */
export function requireContainerCredentials(settings: ContainerSettings, isPublished = false): void {
  const { password, file, generated } = settings;
  if (password !== undefined) requireLength(password, settings);
  if (file !== undefined && !generated) return;
  const missing = [
    ...(password?.origin === 'SVC_PASSWORD' ? [] : ['SVC_PASSWORD']),
    ...(settings.apiKey[0]?.origin === 'SVC_API_KEY' ? [] : ['SVC_API_KEY']),
  ];
  if (missing.length === 0) return;
  const published = isPublished ? `SVC_PASSWORD is the published default password, which counts as none: ` : '';
  const own = 'an svc.json of your own mounted at /data/svc.json';
  throw new Refusal(`${published}${missing.join(' and ')} must be set, or ${own}${allowance(settings, missing)}`);
}

function requireLength(
  { origin, length }: { readonly origin: string; readonly length: number },
  settings: ContainerSettings,
): void {
  const isUnchecked = settings.allowNoPassword && origin !== 'SVC_PASSWORD';
  if (isUnchecked || length >= MIN_EXPOSED_PASSWORD_CHARACTERS) return;
  const name = origin === 'SVC_PASSWORD' ? origin : `${origin}: password`;
  throw new Refusal(`${name} must be at least ${MIN_EXPOSED_PASSWORD_CHARACTERS} characters, it has ${length}`);
}

/** What was meant to stand for a credential that is missing, and does not. */
function allowance({ allowNoApiKey, allowNoPassword }: ContainerSettings, missing: readonly string[]): string {
  const given = [
    ...(allowNoPassword && missing.includes('SVC_PASSWORD') ? ['SVC_ALLOW_NO_PASSWORD'] : []),
    ...(allowNoApiKey && missing.includes('SVC_API_KEY') ? ['SVC_ALLOW_NO_API_KEY'] : []),
  ];
  if (given.length === 0) return '';
  return `; without that file ${given.join(' and ')} ${given.length === 1 ? 'does' : 'do'} not count in the container`;
}
