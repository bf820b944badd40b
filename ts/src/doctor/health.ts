/** The health of a server that runs, asked over HTTP. */
import { isIPv6 } from 'node:net';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/schema';
import { type Address, formatAddress } from '../address.ts';

/** A server that takes longer to say how it is, is not well. */
const MAX_ANSWER_MS = 3000;

/** The parts of a health record that tell a server of this kind from another. */
const HealthSchema = Type.Object({
  status: Type.String(),
  model: Type.Union([Type.String(), Type.Null()]),
  sha256: Type.Union([Type.String(), Type.Null()]),
});

/** The health record of the server that listens on `listen`; undefined when there is none, or another one. */
export async function healthOf(listen: Address): Promise<Static<typeof HealthSchema> | undefined> {
  const url = `http://${formatAddress({ ...listen, host: reachable(listen.host) })}/health`;
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(MAX_ANSWER_MS) });
    const health: unknown = await response.json();
    return Check(HealthSchema, health) ? health : undefined;
  } catch {
    return undefined;
  }
}

/** A server on every address is reached by that of this machine. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return isIPv6(host) && /^[0:]+$/.test(host) ? '::1' : host;
}
