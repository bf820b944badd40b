/** The health of a running server, requested over HTTP. */
import { isIPv6 } from 'node:net';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { type Address, formatAddress } from './address.ts';

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
export async function healthOf(
  listen: Address,
  maxAnswerMs = MAX_ANSWER_MS,
): Promise<Static<typeof HealthSchema> | undefined> {
  const url = `http://${formatAddress({ ...listen, host: reachable(listen.host) })}/health`;
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(maxAnswerMs) });
    const health: unknown = await response.json();
    return Check(HealthSchema, health) ? health : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the host for a request to a server that listens on `host`: one that listens on every address is reached by
 * loopback.
 */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return isIPv6(host) && /^[0:]+$/.test(host) ? '::1' : host;
}
