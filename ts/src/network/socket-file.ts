/** The file of a unix socket: its mode, whose it is, and files that servers have left behind. */
import { randomUUID } from 'node:crypto';
import { type BigIntStats, existsSync, linkSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { dirname } from 'node:path';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';
import { formatAddress, type SocketAddress } from './address.ts';

/** The most bytes of a socket's path. Older releases of Node would cut off the rest, without a word. */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

/** The codes of a connection to a file that no server listens on. */
const DEAD: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);

/** The file of each server that listens on a socket. */
const FILES = new WeakMap<Server, BigIntStats>();

/**
 * Lets `server` listen on a socket. Its file has its mode from the first moment on: with a change afterwards, others
 * could connect before it.
 */
export function listenOnSocket(server: Server, { socket, mode }: SocketAddress): void {
  // Node binds the socket before `listen` returns.
  const before = process.umask(0o777 & ~mode);
  try {
    server.listen(socket);
  } finally {
    process.umask(before);
  }
  server.once('listening', () => {
    const file = found(socket);
    if (file !== undefined) FILES.set(server, file);
  });
}

/**
 * Lets `server` take no more connections, and removes the file of its socket, if it has one. A file that another server
 * has put in its place stays: Node itself would remove whatever has the name.
 */
export function closeServer(server: Server, onClosed: () => void): void {
  const socket = server.address();
  const own = FILES.get(server);
  if (typeof socket !== 'string' || own === undefined || isSame(found(socket), own)) server.close(onClosed);
  // Node removes the file before `close` returns, so the other one is out of the way for a moment only.
  else withoutFile(socket, () => server.close(onClosed));
}

function withoutFile(socket: string, work: () => void): void {
  const aside = asideOf(socket);
  try {
    renameSync(socket, aside);
  } catch {
    // No file has the name, or the folder may not be written: there is nothing to keep.
    work();
    return;
  }
  work();
  putBack(aside, socket);
}

const asideOf = (socket: string) => `${socket}.${randomUUID()}`;

/** Gives a file its name again, unless yet another file has it: then its server is the one to be reached. */
function putBack(aside: string, socket: string): void {
  try {
    linkSync(aside, socket);
  } catch {
    // Some file systems have no second names.
    if (found(socket) === undefined) renameSync(aside, socket);
  }
  rmSync(aside, { force: true });
}

/** Returns what is at `path`; undefined also if it cannot be looked at. */
function found(path: string): BigIntStats | undefined {
  try {
    return fileAt(path);
  } catch {
    return undefined;
  }
}

/** Whether two looks have found the same file. The number of a removed file is given to the next one at once. */
function isSame(one: BigIntStats | undefined, other: BigIntStats): boolean {
  return one !== undefined && one.ino === other.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs;
}

/**
 * Checks that a server could listen on a socket. A file of a server that was killed does not count: with `remove` it is
 * removed.
 *
 * @throws Refusal when a server listens there, or another file is there.
 */
export async function requireFreeSocket(address: SocketAddress, { remove }: { remove: boolean }): Promise<void> {
  const { socket } = address;
  if (process.platform === 'win32') throw refused(address, 'there are no unix sockets on Windows');
  if (Buffer.byteLength(socket) > MAX_PATH_BYTES) {
    throw refused(address, `the path of a socket has at most ${MAX_PATH_BYTES} bytes`);
  }
  // The system's own error for this is the same as for a folder that may not be written.
  if (!existsSync(dirname(socket))) throw refused(address, 'no such folder');
  const there = look(address);
  if (there === undefined) return;
  if (!there.isSocket()) throw refused(address, 'there is a file that is no socket');
  if (await isAlive(socket)) throw refused(address, 'a server listens there');
  if (remove) removeDead(address, there);
}

function look(address: SocketAddress): BigIntStats | undefined {
  try {
    return fileAt(address.socket);
  } catch (error) {
    throw refused(address, errorCode(error));
  }
}

function fileAt(path: string): BigIntStats | undefined {
  return lstatSync(path, { throwIfNoEntry: false, bigint: true });
}

/**
 * Removes the file of an ended server, but not that of a server which has meanwhile taken its place. The file gets
 * another name first: what is removed then is what was looked at.
 */
function removeDead(address: SocketAddress, dead: BigIntStats): void {
  const { socket } = address;
  if (!isSame(look(address), dead)) return;
  const aside = asideOf(socket);
  try {
    renameSync(socket, aside);
  } catch (error) {
    // Another start has removed it.
    if (errorCode(error) === 'ENOENT') return;
    throw refused(address, `the socket of an ended server cannot be removed (${errorCode(error)})`);
  }
  if (isSame(found(aside), dead)) rmSync(aside, { force: true });
  else putBack(aside, socket);
}

/** Resolves with whether a server listens on a socket. A server that takes no more connections also listens. */
function isAlive(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    const tell = (isThere: boolean) => {
      connection.destroy();
      resolve(isThere);
    };
    connection.once('connect', () => tell(true));
    connection.once('error', (error) => tell(!DEAD.has(errorCode(error))));
  });
}

function refused(address: SocketAddress, why: string): Refusal {
  const other = 'choose another address with listen or --listen';
  return new Refusal(`cannot listen on ${formatAddress(address)}: ${why}; ${other}`);
}
