/** The addresses that a redirect may not lead to. */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { SourceError } from './source-error.ts';

/** Networks outside of the public internet (IANA special-purpose registries), and networks that lead into IPv4. */
const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv4');
}
const PUBLIC6 = new BlockList();
PUBLIC6.addSubnet('2000::', 3, 'ipv6');
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv6');
}

/** Whether `address` belongs to this machine or to a local network, or is no usable address. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return PRIVATE.check(address, 'ipv4');
  if (family !== 6) return true;
  const mapped = /^::ffff:/i.test(address);
  return PRIVATE.check(address, 'ipv6') || (!mapped && !PUBLIC6.check(address, 'ipv6'));
}

/** The function that turns a name into addresses; tests pass their own. */
export type Resolve = (
  host: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Returns a look-up for a connection that gives no private address. The connection goes to the addresses that were
 * checked, even if the name server answers differently a moment later.
 */
export function publicLookup(resolve: Resolve = lookup): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const inside = addresses.find(({ address }) => isPrivateAddress(address));
      const first = addresses[0];
      if (inside !== undefined || first === undefined) {
        return done(privateAddress(host, inside?.address ?? 'no address'), '');
      }
      return options.all ? done(null, addresses) : done(null, first.address, first.family);
    });
  };
}

/** Refuses a host that is written as a private address, for which no look-up is made. */
export function requirePublicHost(hostname: string): void {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0 && isPrivateAddress(address)) throw privateAddress(hostname, address);
}

function privateAddress(host: string, address: string): SourceError {
  return new SourceError(`a redirect to ${host} (${address}), which is not a public address, is not followed`);
}
