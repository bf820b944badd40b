/** Starts HAProxy with the configuration of `deploy/`, and the servers behind it. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPOSITORY } from '../addon/model-folders.ts';
import { freePort } from '../free-port.ts';
import { ProcessOutput } from '../process-output.ts';
import { SvcProcess } from '../svc-process.ts';
import { folderWithConfig } from '../temporary-folder.ts';

export const HAPROXY_CONFIG = join(REPOSITORY, 'deploy', 'haproxy', 'haproxy.cfg');

const PASSWORD = 'Operator-password-1';

/** A server that keeps its address when it is started again. */
export class StandingServer {
  readonly address: string;
  #process: SvcProcess | undefined;
  readonly #test: TestContext;
  readonly #cwd: string;

  private constructor(test: TestContext, port: number) {
    this.#test = test;
    this.address = `127.0.0.1:${port}`;
    this.#cwd = folderWithConfig(test, { listen: this.address, drain_delay_ms: 3000 });
  }

  static async start(test: TestContext): Promise<StandingServer> {
    const server = new StandingServer(test, await freePort());
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const env = { SVC_PASSWORD: PASSWORD, SVC_THREADS: '1', SVC_LOG_LEVEL: 'info' };
    this.#process = new SvcProcess(this.#test, ['serve', '--device', 'cpu'], { cwd: this.#cwd, env });
    await this.#process.logged(/"msg":"model .+ loaded"/);
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.signal(name);
  }

  /** Ends the server with a signal, and returns its exit code and signal. */
  async end(signal: NodeJS.Signals) {
    this.signal(signal);
    const ended = await this.#process?.finished;
    return [ended?.code, ended?.signal];
  }

  /** Returns the number of requests that the server has answered since its start. */
  async answered(): Promise<number> {
    const headers = { authorization: `Basic ${Buffer.from(`test:${PASSWORD}`).toString('base64')}` };
    const response = await fetch(`http://${this.address}/stats`, { headers });
    const { requests } = (await response.json()) as { readonly requests: { readonly total: number } };
    return requests.total;
  }
}

export interface Balancer {
  readonly url: string;
  /** Resolves when HAProxy regards this many servers as healthy. */
  readonly sees: (servers: number) => Promise<void>;
}

/** Starts HAProxy in front of three servers; it is killed when the test ends. */
export async function startBalancer(t: TestContext, servers: readonly StandingServer[]): Promise<Balancer> {
  const [address, stats] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const at = servers.map((server, index) => [`SVC_SERVER_${index + 1}`, server.address]);
  const env = { ...process.env, ...Object.fromEntries(at), SVC_BALANCER: address, SVC_BALANCER_STATS: stats };
  const haproxy = spawn('haproxy', ['-f', HAPROXY_CONFIG], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const { finished } = new ProcessOutput(haproxy);
  t.after(async () => {
    haproxy.kill('SIGKILL');
    await finished;
  });
  const sees = async (wanted: number) => {
    const endMs = performance.now() + 60_000;
    while ((await wellServers(`http://${stats}/;csv`)) !== wanted) {
      if (haproxy.exitCode !== null) throw new Error((await finished).stderr);
      if (performance.now() > endMs) throw new Error(`HAProxy does not see ${wanted} servers`);
      await sleep(100);
    }
  };
  await sees(servers.length);
  return { url: `http://${address}`, sees };
}

/** Returns the number of servers that are up in the backend by states, or 0 while HAProxy does not answer. */
async function wellServers(url: string): Promise<number> {
  const table = await fetch(url).then(
    (response) => response.text(),
    () => undefined,
  );
  const [names, ...rows] = (table ?? '').split('\n').map((line) => line.split(','));
  const status = names?.indexOf('status') ?? -1;
  return rows.filter((row) => row[0] === 'by_state' && row[1] !== 'BACKEND' && row[status] === 'UP').length;
}
