/** What holds in the container image beside the usual rules. */
import { Refusal } from './refusal.ts';

/** Where the server listens in the container when nobody says otherwise: a port of a container is published or not. */
export const CONTAINER_LISTEN = '0.0.0.0:21118';

const MIN_PASSWORD_CHARACTERS = 12;

/** What the rules look at, of the settings. */
export interface ContainerSettings {
  readonly apiKey: readonly { readonly origin: string }[];
  readonly password?: { readonly origin: string; readonly length: number } | undefined;
  readonly file?: string | undefined;
  /** Whether the server made the file itself. */
  readonly generated: boolean;
}

/**
 * Checks that the credentials were chosen: the server in a container can be reached from outside, and what it would
 * generate is in a volume that few look into. A `svc.json` that the server made itself says nothing about that.
 *
 * @throws Refusal when one of them is missing and there is no `svc.json` of the user's, or the password is too short.
 */
export function requireContainerCredentials({ apiKey, password, file, generated }: ContainerSettings): void {
  if (password?.origin === 'SVC_PASSWORD' && password.length < MIN_PASSWORD_CHARACTERS) {
    throw new Refusal(`SVC_PASSWORD must be at least ${MIN_PASSWORD_CHARACTERS} characters, it has ${password.length}`);
  }
  if (file !== undefined && !generated) return;
  const missing = [
    ...(password?.origin === 'SVC_PASSWORD' ? [] : ['SVC_PASSWORD']),
    ...(apiKey[0]?.origin === 'SVC_API_KEY' ? [] : ['SVC_API_KEY']),
  ];
  if (missing.length === 0) return;
  throw new Refusal(`${missing.join(' and ')} must be set, or an svc.json of your own mounted at /data/svc.json`);
}
