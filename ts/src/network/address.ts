/** Listen addresses: how they are written, and which of them other machines can reach. */
import { BlockList, isIP, isIPv6 } from 'node:net';

export interface Address {
  /** A host name or an IP address, without brackets. */
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
}

/**
 * Returns the address that a text names as `HOST:PORT`, `[IPV6]:PORT` or `:PORT` (every IPv4 address); undefined for any
 * other text.
 */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<name>[\w.-]*)):(?<port>\d{1,5})$/.exec(text);
  if (match?.groups === undefined) return undefined;
  const { ipv6, name, port } = match.groups;
  if (Number(port) > 65_535 || (ipv6 !== undefined && !isIPv6(ipv6))) return undefined;
  return { host: ipv6 || name || '0.0.0.0', port: Number(port) };
}

/** Returns the address as `HOST:PORT`, with brackets around an IPv6 host. */
export function formatAddress({ host, port }: Address): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

/** Whether `host` is `localhost`, in `127.0.0.0/8` or `::1`: a host that only this machine can reach. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true;
  const family = isIP(host);
  return family !== 0 && LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6');
}
