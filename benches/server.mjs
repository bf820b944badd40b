/** The measured server, started in the way of `npm start`, and a light client on one connection that is kept alive. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

/** The longest time of a start; a peer may have to import a large library first. */
const START_TIMEOUT_MS = 120_000;

/** Starts a server with `settings` as its environment (`SVC_*`), in a folder of its own, on a free port of loopback. */
export async function startServer(settings) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_'));
  return start({
    name: 'the server',
    command: [process.execPath, resolve('bin/svc.js'), 'serve', '--listen', '127.0.0.1:0'],
    env: { ...Object.fromEntries(inherited), ...settings },
    find: (log) => /listening on (http:\/\/[^"\s]+)/.exec(log)?.[1],
    ready: '/readyz',
  });
}

/**
 * Starts a process in a folder of its own and waits until it answers.
 *
 * @param find returns the server's origin from its log so far
 * @param ready the path that answers 200 once the server is ready
 * @returns `{origin, pid, stop}`
 */
export async function start({ name, command: [program, ...args], env, find, ready }) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  const log = join(folder, 'log');
  const descriptor = openSync(log, 'w');
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', descriptor, descriptor] });
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
  const startMs = performance.now();
  while (child.exitCode === null && performance.now() - startMs < START_TIMEOUT_MS) {
    const origin = find(readFileSync(log, 'utf8'));
    if (origin !== undefined && (await isReady(origin + ready))) return { origin, pid: child.pid, stop };
    await sleep(50);
  }
  const said = readFileSync(log, 'utf8');
  await stop();
  throw new Error(`${name} does not start:\n${said}`);
}

async function isReady(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

/** Returns a port of 127.0.0.1 on which no process listens. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Returns the resident bytes of a process and of those that it started; `undefined` if there is no `ps`. */
export function residentBytes(pid) {
  const { status, stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid=,rss=']);
  if (status !== 0) return undefined;
  const rows = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const family = new Set([pid]);
  for (const [own, parent] of rows.toSorted(([a], [b]) => a - b)) if (family.has(parent)) family.add(own);
  return rows.filter(([own]) => family.has(own)).reduce((sum, [, , kibibytes]) => sum + kibibytes * 1024, 0);
}

/** Returns the bytes of a request, so that they can be made before anything is measured. */
export function requestBytes(origin, body, path = '/v1/systemone', headers = []) {
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${new URL(origin).host}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * One connection to a server. It is a bare socket: a request is one write of bytes that were made before, and while the
 * clock runs, only the length of the answer is read.
 */
export class Client {
  #socket;
  #origin;
  #received = [];
  #wanted = -1;
  #length = 0;
  #waiting;

  constructor(origin) {
    this.#origin = origin;
  }

  /**
   * Asks for a decision; resolves with the answer's text, the time to its last byte, and the times that the server
   * reports.
   */
  decide(body) {
    return this.send(requestBytes(this.#origin, body));
  }

  /** Sends the bytes of `requestBytes`, and resolves like `decide`. */
  async send(bytes) {
    this.#socket ??= await this.#connect();
    const startMs = performance.now();
    const answer = new Promise((done, fail) => {
      this.#waiting = { done, fail };
    });
    this.#socket.write(bytes);
    const endMs = await answer;
    return { ms: endMs - startMs, startMs, ...this.#read() };
  }

  close() {
    this.#socket?.destroy();
  }

  async #connect() {
    const { hostname, port } = new URL(this.#origin);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', (error) => this.#waiting?.fail(error));
    // Servers close connections that are idle for some seconds, which happens to a peer's while others have their
    // turns.
    socket.on('close', () => {
      this.#socket = undefined;
      this.#waiting?.fail(new Error('the server closed the connection'));
    });
    await once(socket, 'connect');
    return socket;
  }

  #take(chunk) {
    this.#received.push(chunk);
    this.#length += chunk.length;
    if (this.#wanted < 0) this.#wanted = wholeLength(Buffer.concat(this.#received));
    if (this.#wanted < 0 || this.#length < this.#wanted) return;
    const { done } = this.#waiting;
    this.#waiting = undefined;
    done(performance.now());
  }

  #read() {
    const whole = Buffer.concat(this.#received).toString('utf8');
    this.#received = [];
    this.#wanted = -1;
    this.#length = 0;
    const at = whole.indexOf('\r\n\r\n');
    const [head, text] = [whole.slice(0, at), whole.slice(at + 4)];
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`${head.split('\r\n')[0]}: ${text}`);
    return { text, timing: serverTiming(/^server-timing: (.*)$/im.exec(head)?.[1] ?? '') };
  }
}

/** Returns the length of head and body together, or -1 while the head is not complete. */
function wholeLength(received) {
  const at = received.indexOf('\r\n\r\n');
  if (at < 0) return -1;
  const length = /^content-length: *(\d+)/im.exec(received.toString('latin1', 0, at))?.[1];
  if (length === undefined) throw new Error('an answer without content-length');
  return at + 4 + Number(length);
}

/** Returns `encode;dur=0.10, wait;dur=0.00, …` as `{encode: 0.1, wait: 0, …}`. */
function serverTiming(header) {
  return Object.fromEntries([...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, Number(ms)]));
}
