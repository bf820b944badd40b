/** The server that is measured, as `npm start` starts it, and a client on one connection that is kept alive. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

const START_TIMEOUT_MS = 30_000;

/** Starts a server with `settings` as its environment (`SVC_*`), in a folder of its own, on a free port of loopback. */
export async function startServer(settings) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const log = join(folder, 'log');
  const descriptor = openSync(log, 'w');
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_'));
  const child = spawn(process.execPath, [resolve('bin/svc.js'), 'serve', '--listen', '127.0.0.1:0'], {
    cwd: folder,
    env: { ...Object.fromEntries(inherited), ...settings },
    stdio: ['ignore', 'ignore', descriptor],
  });
  closeSync(descriptor);
  const exited = once(child, 'exit');
  const kill = () => child.kill();
  process.once('exit', kill);
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    process.off('exit', kill);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    return { origin: await origin(log, child), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Resolves with the server's origin once it has loaded its model. */
async function origin(log, child) {
  const startMs = performance.now();
  while (child.exitCode === null && performance.now() - startMs < START_TIMEOUT_MS) {
    const found = /listening on (http:\/\/[^"\s]+)/.exec(readFileSync(log, 'utf8'))?.[1];
    if (found !== undefined && (await fetch(`${found}/readyz`)).ok) return found;
    await sleep(50);
  }
  throw new Error(`the server does not start:\n${readFileSync(log, 'utf8')}`);
}

/** One connection to a server. */
export class Client {
  #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #url;

  constructor(origin) {
    this.#url = new URL('/v1/systemone', origin);
  }

  /** Resolves with the answer's text, the time until its last byte was there, and what the server says of its own. */
  async decide(body) {
    const startMs = performance.now();
    const { statusCode, headers, text } = await this.#send(body);
    const ms = performance.now() - startMs;
    if (statusCode !== 200) throw new Error(`${statusCode}: ${text}`);
    return { text, ms, timing: serverTiming(headers['server-timing']) };
  }

  #send(body) {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    return new Promise((done, fail) => {
      const outgoing = request(this.#url, { method: 'POST', agent: this.#agent, headers }, (incoming) => {
        const chunks = [];
        incoming.on('data', (chunk) => chunks.push(chunk));
        incoming.on('error', fail);
        incoming.on('end', () => {
          const { statusCode, headers } = incoming;
          done({ statusCode, headers, text: Buffer.concat(chunks).toString('utf8') });
        });
      });
      outgoing.on('error', fail);
      outgoing.end(body);
    });
  }

  close() {
    this.#agent.destroy();
  }
}

/** `encode;dur=0.10, wait;dur=0.00, …` as `{encode: 0.1, wait: 0, …}`. */
function serverTiming(header) {
  return Object.fromEntries([...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, Number(ms)]));
}
