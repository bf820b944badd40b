/** The health of a running server, requested over HTTP. */
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import type { Address } from './address.ts';
import { reach, urlOf } from './reach.ts';

/** A server that takes longer than this to report its health does not count as healthy. */
const MAX_ANSWER_MS = 3000;

/** The parts of a health record that tell a server of this kind from another. */
const HealthSchema = Type.Object({
  status: Type.String(),
  model: Type.Union([Type.String(), Type.Null()]),
  sha256: Type.Union([Type.String(), Type.Null()]),
});

/**
 * Returns the health record of the server that listens on `listen`; undefined if no server answers, or one of another
 * kind.
 */
export async function healthOf(listen: Address): Promise<Static<typeof HealthSchema> | undefined> {
  try {
    const signal = AbortSignal.timeout(MAX_ANSWER_MS);
    const response = await reach(new URL('health', urlOf(listen)), { redirect: 'error', signal });
    const health: unknown = await response.json();
    return Check(HealthSchema, health) ? health : undefined;
  } catch {
    return undefined;
  }
}
