/** The connections to the server behind the gate, which are used again. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';

/** An idle connection is given up before the server does so, after 65 s: else one could be used that is being closed. */
const IDLE_MS = 30_000;

/** Returns an agent for `protocol` that closes an idle connection on which something comes: nobody has asked for it. */
export function createAgent(protocol: string): http.Agent {
  const { Agent } = protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const keep = agent.keepSocketAlive.bind(agent);
  const reuse = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket) => {
    socket.on('data', close);
    // Whether it is kept; the types do not say so.
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
