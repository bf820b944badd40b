/** The flags `--host` and `--port`: parts of the listen address, for those who know them from other servers. */
import { isIPv6 } from 'node:net';
import { type Address, formatAddress, type HostAddress } from '../network/address.ts';
import { WrongUsage } from '../refusal.ts';

export interface AddressFlags {
  readonly listen?: string;
  readonly host?: string;
  readonly port?: string;
}

/** A listen address, and the flags that it comes from. */
export interface AddressSetting {
  /** The address as `HOST:PORT`. */
  readonly value: string;
  readonly where: string;
  readonly origin: string;
}

/**
 * Returns the address `before` with the host and the port of the flags in place of its own; undefined when neither flag
 * is given. Only both flags together replace a socket, which has no part for either.
 *
 * @throws WrongUsage when a flag is wrong, or `--listen` is given as well.
 */
export function hostAndPort({ listen, host, port }: AddressFlags, before: Address): AddressSetting | undefined {
  const given = [...(host === undefined ? [] : ['--host']), ...(port === undefined ? [] : ['--port'])];
  if (given.length === 0) return undefined;
  const origin = given.join(' and ');
  if (listen !== undefined) throw new WrongUsage(`${origin}: --listen is the whole address; give one or the other`);
  const own = { ...(host !== undefined && { host: hostOf(host) }), ...(port !== undefined && { port: portOf(port) }) };
  return { value: formatAddress(merged(before, own, origin)), where: origin, origin };
}

function merged(before: Address, own: Partial<HostAddress>, origin: string): HostAddress {
  const { host, port } = own;
  if (host !== undefined && port !== undefined) return { host, port };
  if (!('socket' in before)) return { ...before, ...own };
  const missing = host === undefined ? '--host' : '--port';
  throw new WrongUsage(`${origin}: the listen address is ${formatAddress(before)}; give ${missing} as well`);
}

function hostOf(text: string): string {
  const bare = /^\[(.+)\]$/.exec(text)?.[1] ?? text;
  if (isIPv6(bare) || /^[\w.-]+$/.test(text)) return bare;
  throw new WrongUsage('--host: must be a host name or an IP address, such as 0.0.0.0 or ::1');
}

function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new WrongUsage('--port: must be a whole number from 0 to 65535');
}
