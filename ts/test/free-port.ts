/** A port for a process that a test starts. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Returns a port on which no process listens. It lies below those that systems give to sockets which ask for any port,
 * so that no other test is given it meanwhile.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(22_000, 32_000);
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return freePort();
    throw error;
  }
  server.close();
  await once(server, 'close');
  return port;
}
