/** The rules of the container image, in addition to the usual ones. */
import { Refusal } from '../refusal.ts';

/** The listen address in the container when none is set: whether a container's port is published is decided outside. */
export const CONTAINER_LISTEN = '0.0.0.0:21118';

/** The fewest characters of a password that other machines can try. */
export const MIN_EXPOSED_PASSWORD_CHARACTERS = 12;

/** The settings that the rules look at. */
interface ContainerSettings {
  readonly apiKey: readonly { readonly origin: string }[];
  readonly password?: { readonly origin: string; readonly length: number } | undefined;
  readonly allowNoApiKey: boolean;
  readonly allowNoPassword: boolean;
  readonly file?: string | undefined;
  /** Whether the server made `file` itself. */
  readonly generated: boolean;
}

/**
 * Checks that the credentials were chosen: the server in a container can be reached from outside, and a generated
 * credential would be in a volume that few people look into. An `svc.json` that the server made itself is no such
 * choice.
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

/** Returns a clause about settings that were meant to replace a missing credential, and do not; empty without them. */
function allowance({ allowNoApiKey, allowNoPassword }: ContainerSettings, missing: readonly string[]): string {
  const given = [
    ...(allowNoPassword && missing.includes('SVC_PASSWORD') ? ['SVC_ALLOW_NO_PASSWORD'] : []),
    ...(allowNoApiKey && missing.includes('SVC_API_KEY') ? ['SVC_ALLOW_NO_API_KEY'] : []),
  ];
  if (given.length === 0) return '';
  return `; without that file ${given.join(' and ')} ${given.length === 1 ? 'does' : 'do'} not count in the container`;
}
