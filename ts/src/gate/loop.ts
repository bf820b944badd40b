/**
 * Gates that lead back to themselves: they are refused at the start if the addresses show it, or else at the first
 * request.
 */
import { randomBytes } from 'node:crypto';
import dns from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Middleware } from 'koa';
import { HttpFailure } from '../errors.ts';
import { type Address, formatAddress, type HostAddress, isLoopback } from '../network/address.ts';
import { serverName, socketOf } from '../network/reach.ts';
import { Refusal } from '../refusal.ts';
import type { RequestState } from '../server/middleware/request.ts';

/** Returns a random name, new at each start, by which a gate recognizes in `Via` the requests that it has forwarded. */
export function gateName(): string {
  return `svc-gate-${randomBytes(8).toString('hex')}`;
}

/** Returns the `Via` of a forwarded request (RFC 9110, 7.6.3). */
export function viaHeader({ headers, httpVersion }: IncomingMessage, name: string): string {
  const before = headers.via === undefined ? '' : `${headers.via}, `;
  return `${before}${httpVersion} ${name}`;
}

/**
 * Returns the middleware that refuses requests that have been through this gate before. Several gates may follow each
 * other, since each has a name of its own.
 */
export function refuseLoops(name: string): Middleware<RequestState> {
  return (ctx, next) => {
    if (ctx.req.headers.via?.includes(name)) {
      throw new HttpFailure('gate_loop', 'the upstream of the gate leads back to the gate', { Connection: 'close' });
    }
    return next();
  };
}

/**
 * Resolves if the server behind the gate is not the gate itself, as far as the addresses tell. A name that cannot be
 * looked up yet may resolve later, so it is no reason to refuse.
 *
 * @throws Refusal when `upstream` leads to the address on which the gate is to listen
 */
export async function refuseOwnAddress(listen: Address, upstream: URL): Promise<void> {
  const isOwn = 'socket' in listen ? listen.socket === socketOf(upstream) : await leadsTo(listen, upstream);
  if (!isOwn) return;
  throw new Refusal(
    `--upstream: ${serverName(upstream)} is the gate itself, which listens on ${formatAddress(listen)}`,
  );
}

/** Resolves with whether requests to `upstream` arrive at `listen`, as far as the addresses tell. */
async function leadsTo(listen: HostAddress, upstream: URL): Promise<boolean> {
  const port = Number(upstream.port || (upstream.protocol === 'https:' ? 443 : 80));
  if (socketOf(upstream) !== undefined || port !== listen.port) return false;
  const [own, theirs] = await Promise.all([addresses(listen.host), addresses(bareHost(upstream))]);
  const isOnAll = own.some(isWildcard);
  const machine = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  const listens = listOf(isOnAll ? [...own, ...machine] : own);
  const isOwn = (address: string) =>
    contains(listens, address) ||
    (isOnAll && isLoopback(address)) ||
    // A connection to a wildcard address goes to this machine, by loopback.
    (isWildcard(address) && own.some(isLoopback));
  return theirs.some(isOwn);
}

/** Returns the host of a URL, an IPv6 address without its brackets. */
export function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

const isWildcard = (address: string) => address === '0.0.0.0' || address === '::';

const family = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4');

/** Returns a list that treats an IPv4 address written as IPv6 as the same address. */
function listOf(all: readonly string[]): BlockList {
  const list = new BlockList();
  for (const address of all) list.addAddress(address, family(address));
  return list;
}

const contains = (list: BlockList, address: string) => list.check(address, family(address));

async function addresses(host: string): Promise<readonly string[]> {
  const found = await dns.lookup(host, { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}
