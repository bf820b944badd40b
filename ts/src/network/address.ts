/** Listen addresses: how they are written, and which of them others can reach. */
import { BlockList, isIP, isIPv6 } from 'node:net';

/** A port of a host. */
export interface HostAddress {
  /** A host name or an IP address, without brackets. */
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
}

/** A unix socket. */
export interface SocketAddress {
  /** Absolute path of the socket's file. */
  readonly socket: string;
  /** The permission bits of the file: whoever may write to it may connect. */
  readonly mode: number;
}

export type Address = HostAddress | SocketAddress;

/** The mode of a socket that only its owner can connect to. */
export const OWNER_ONLY = 0o600;

/** The permission bits of everybody but the owner. */
const OTHERS = 0o077;

/**
 * Returns the address that a text names as `HOST:PORT`, `[IPV6]:PORT`, `:PORT` (every IPv4 address) or `unix:/PATH` (with
 * the mode `OWNER_ONLY`); undefined for any other text.
 */
export function parseAddress(text: string): Address | undefined {
  const socket = socketIn(text);
  if (socket !== undefined) return { socket, mode: OWNER_ONLY };
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<name>[\w.-]*)):(?<port>\d{1,5})$/.exec(text);
  if (match?.groups === undefined) return undefined;
  const { ipv6, name, port } = match.groups;
  if (Number(port) > 65_535 || (ipv6 !== undefined && !isIPv6(ipv6))) return undefined;
  return { host: ipv6 || name || '0.0.0.0', port: Number(port) };
}

/** Returns the absolute path in `unix:/PATH`; undefined for any other text. */
export function socketIn(text: string): string | undefined {
  return /^unix:(\/[^\0]*[^\0/])$/.exec(text)?.[1];
}

/** Returns the address as `HOST:PORT`, with brackets around an IPv6 host, or as `unix:/PATH`. */
export function formatAddress(address: Address): string {
  if ('socket' in address) return `unix:${address.socket}`;
  const { host, port } = address;
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns the address as it stands in the log: as a URL, or as `unix:/PATH`. */
export function shownAddress(address: Address): string {
  return 'socket' in address ? formatAddress(address) : `http://${formatAddress(address)}`;
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

/**
 * Whether an address needs no credentials by itself: only this machine can reach it, or, for a socket, only its owner.
 */
export function isPrivate(address: Address): boolean {
  return 'socket' in address ? (address.mode & OTHERS) === 0 : isLoopback(address.host);
}
