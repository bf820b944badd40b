/** The mode of a listen address that is a socket. */
import type { Address } from '../network/address.ts';

/** Returns `address` with the mode of `listen_mode`, which counts only for a socket. */
export function withMode(address: Address, listenMode: string): Address {
  return 'socket' in address ? { ...address, mode: Number.parseInt(listenMode, 8) } : address;
}
