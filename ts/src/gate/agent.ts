/** The connections to the server behind the gate, which are reused. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * An idle connection is closed before the server closes it, after 65 s: otherwise the gate could use a connection that
 * is being closed.
 */
const IDLE_MS = 30_000;

/**
 * Returns an agent for `protocol` that closes an idle connection on which data arrives, since no request is waiting for
 * it.
 */
export function createAgent(protocol: string): http.Agent {
  const { Agent } = protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const keep = agent.keepSocketAlive.bind(agent);
  const reuse = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket) => {
    socket.on('data', close);
    // The return value tells whether the socket is kept; the types do not say so.
    return keep(socket);
  };
  agent.reuseSocket = (socket, request) => {
    socket.off('data', close);
    reuse(socket, request);
  };
  return agent;
}

function close(this: Duplex): void {
  this.destroy();
}
