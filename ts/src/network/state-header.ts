/**
 * The header by which a load balancer sends requests about one state to one server, whose KV cache has that state.
 * `docs/scaling.md` defines it for every client; the server itself ignores it.
 */
import { sha256Of } from '../files/sha256.ts';

export const STATE_HEADER = 'x-svc-state';

/**
 * The digits of the value: enough to tell the states of a few servers apart, too few to find the text again by more
 * than a guess.
 */
const DIGITS = 16;

/** Returns the header's value for a state, which is given as its JSON text: 16 hexadecimal digits. */
export function stateDigest(stateJson: string): string {
  const json = stateJson.trim();
  const text = json.startsWith('"') ? String(JSON.parse(json)) : json;
  return sha256Of(text).slice(0, DIGITS);
}
