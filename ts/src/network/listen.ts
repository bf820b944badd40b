/** Listening on an address, and the reasons why a server cannot. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Refusal } from '../refusal.ts';
import { type Address, formatAddress } from './address.ts';

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'not permitted',
  EADDRNOTAVAIL: 'not an address of this machine',
  ENOTFOUND: 'no such host',
};

/**
 * Resolves with the address of `server` once it listens.
 *
 * @throws Refusal when it cannot listen on `address`.
 */
export async function listen(server: Server, address: Address): Promise<AddressInfo> {
  server.listen(address);
  try {
    await once(server, 'listening');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    const why = LISTEN_PROBLEMS[code] ?? code;
    throw new Refusal(
      `cannot listen on ${formatAddress(address)}: ${why}; choose another address with listen or --listen`,
    );
  }
  return server.address() as AddressInfo;
}

/**
 * Resolves when a server could listen on `address`.
 *
 * @throws Refusal when no server could
 */
export async function requireFreeAddress(address: Address): Promise<void> {
  const server = createServer();
  await listen(server, address);
  await new Promise((resolve) => server.close(resolve));
}
