/** A request in the fragment of an address, which browsers send to no server. */

const PREFIX = '#request=';

/** The longest text that a link holds, in characters: longer addresses do not survive mails and chats. */
export const MAX_SHARED_CHARACTERS = 16_000;

/** Returns the fragment that holds a request's text, as URL-safe base64 of its UTF-8. */
export function requestFragment(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
  return `${PREFIX}${btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`;
}

/**
 * Returns the request's text in a fragment; undefined for a fragment that is about something else, and `null` for one
 * that was damaged.
 */
export function requestInFragment(fragment: string): string | null | undefined {
  if (!fragment.startsWith(PREFIX)) return undefined;
  try {
    const bytes = atob(fragment.slice(PREFIX.length).replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
  } catch {
    return null;
  }
}
