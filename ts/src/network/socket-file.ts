/** The file of a unix socket: its mode, and files that servers have left behind. */
import { existsSync, lstatSync, rmSync, type Stats } from 'node:fs';
import { connect, type Server } from 'node:net';
import { dirname } from 'node:path';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';
import { formatAddress, type SocketAddress } from './address.ts';

/** The most bytes of a socket's path. Older releases of Node would cut off the rest, without a word. */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

/** The codes of a connection to a file that no server listens on. */
const DEAD: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);

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
  const found = fileAt(address);
  if (found === undefined) return;
  if (!found.isSocket()) throw refused(address, 'there is a file that is no socket');
  if (await isAlive(socket)) throw refused(address, 'a server listens there');
  // Meanwhile another server may have taken the place of the dead one.
  if (remove && fileAt(address)?.ino === found.ino) removeFile(address);
}

function fileAt(address: SocketAddress): Stats | undefined {
  try {
    return lstatSync(address.socket, { throwIfNoEntry: false });
  } catch (error) {
    throw refused(address, errorCode(error));
  }
}

function removeFile(address: SocketAddress): void {
  try {
    rmSync(address.socket, { force: true });
  } catch (error) {
    throw refused(address, `the socket of an ended server cannot be removed (${errorCode(error)})`);
  }
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
