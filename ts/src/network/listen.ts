/** Listening on an address, and the reasons why a server cannot. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Refusal } from '../refusal.ts';
import { type Address, formatAddress } from './address.ts';
import { healthOf } from './health.ts';
import { listenOnSocket, requireFreeSocket } from './socket-file.ts';

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'not permitted',
  EADDRNOTAVAIL: 'not an address of this machine',
  ENOTFOUND: 'no such host',
  EROFS: 'the folder is read-only',
};

/**
 * Resolves with the address of `server` once it listens. The file that an ended server has left in the place of a
 * socket is removed.
 *
 * @throws Refusal when it cannot listen on `address`.
 */
export async function listen<Wanted extends Address>(server: Server, address: Wanted): Promise<Wanted> {
  if ('socket' in address) await requireFreeSocket(address, { remove: true });
  try {
    if ('socket' in address) listenOnSocket(server, address);
    else server.listen(address);
    await once(server, 'listening');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    // Another server has taken the socket since the check.
    if ('socket' in address && code === 'EADDRINUSE') await requireFreeSocket(address, { remove: false });
    const why = LISTEN_PROBLEMS[code] ?? code;
    const by = code === 'EADDRINUSE' ? await holderOf(address) : '';
    throw new Refusal(
      `cannot listen on ${formatAddress(address)}: ${why}${by}; choose another address with listen, --listen or --port`,
    );
  }
  if ('socket' in address) return address;
  const { address: host, port } = server.address() as AddressInfo;
  return { ...address, host, port };
}

/** Returns a clause about the server that has the port, if it is one of this kind. */
async function holderOf(address: Address): Promise<string> {
  const health = await healthOf(address);
  return health === undefined ? '' : ` by a server of svc, whose model is ${JSON.stringify(health.model)}`;
}

/**
 * Resolves when a server could listen on `address`.
 *
 * @throws Refusal when no server could
 */
export async function requireFreeAddress(address: Address): Promise<void> {
  if ('socket' in address) return requireFreeSocket(address, { remove: false });
  const server = createServer();
  await listen(server, address);
  await new Promise((resolve) => server.close(resolve));
}
