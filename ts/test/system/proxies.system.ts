import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.ts';
import { ProcessOutput } from '../process-output.ts';
import { SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'the-key-of-the-callers';
const QUESTIONS = { refund: { type: 'noul', instructions: 'Does the customer want money back?' } };
const DECISION = JSON.stringify({ state: 'I was charged twice.', questions: QUESTIONS });
/** The states of a batch: enough of them that the answer is sent in pieces. */
const STATES = Array.from({ length: 300 }, (_, n) => `Ticket ${n}: I was charged ${n + 2} times.`);
const BATCH = JSON.stringify({ states: STATES, questions: QUESTIONS });

/** Configurations with only what a proxy requires, so that its own defaults are tested. */
const PROXIES = {
  nginx: ({ listen, upstream }: Ends) => `
    pid nginx.pid;
    events {}
    http {
      access_log off;
      server { listen ${listen}; location / { proxy_pass http://${upstream}; } }
    }`,
  HAProxy: ({ listen, upstream }: Ends) => `
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen proxy
  bind ${listen}
  server one ${upstream}
`,
};

interface Ends {
  readonly listen: string;
  readonly upstream: string;
}

type Proxy = keyof typeof PROXIES;

/** Starts a proxy in front of `upstream`, which is killed when the test ends, and returns its URL. */
async function startProxy(t: TestContext, proxy: Proxy, upstream: string): Promise<string> {
  const listen = `127.0.0.1:${await freePort()}`;
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'logs'));
  const file = join(folder, 'proxy.cfg');
  writeFileSync(file, PROXIES[proxy]({ listen, upstream }));
  const command =
    proxy === 'nginx' ? ['nginx', '-p', folder, '-c', file, '-g', 'daemon off;'] : ['haproxy', '-f', file, '-db'];
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const { finished } = new ProcessOutput(child);
  t.after(async () => {
    // nginx ends its workers at SIGTERM, but leaves them behind at SIGKILL.
    child.kill('SIGTERM');
    await finished;
  });
  const url = `http://${listen}`;
  while (!(await fetch(`${url}/health`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) assert.fail((await finished).stderr);
    await sleep(50);
  }
  return url;
}

/** Starts a server, and a gate in front of it if asked for, and returns the URL for callers. */
async function startBehind(t: TestContext, behind: 'server' | 'gate'): Promise<string> {
  const env = { SVC_THREADS: '1', ...(behind === 'server' && { SVC_API_KEY: KEY }) };
  const args = ['serve', '--listen', '127.0.0.1:0', '--device', 'cpu'];
  const server = new SvcProcess(t, args, { cwd: temporaryFolder(t), env });
  await server.logged(/model .* loaded/);
  if (behind === 'server') return (await server.url()).slice('http://'.length);
  const gateArgs = ['gate', '--listen', '127.0.0.1:0', '--upstream', await server.url()];
  const gate = new SvcProcess(t, gateArgs, { cwd: temporaryFolder(t), env: { GATE_API_KEY: KEY } });
  return (await gate.url()).slice('http://'.length);
}

async function ask(url: string, body: string, accept = 'application/json') {
  const headers = { authorization: `Bearer ${KEY}`, accept };
  const response = await fetch(url, { method: 'POST', body, headers, signal: AbortSignal.timeout(60_000) });
  assert.equal(response.status, 200, url);
  return response;
}

/** The part of a state's result that is the same each time. */
interface Result {
  readonly answers: object;
}

const resultsOf = async (response: Response) =>
  ((await response.json()) as { readonly results: readonly Result[] }).results.map(({ answers }) => answers);

const linesOf = async (response: Response) =>
  (await response.text())
    .trimEnd()
    .split('\n')
    .slice(0, STATES.length)
    .map((line) => (JSON.parse(line) as Result).answers);

suite('with its own defaults', { timeout: 300_000 }, () => {
  for (const proxy of Object.keys(PROXIES) as Proxy[]) {
    for (const behind of ['server', 'gate'] as const) {
      test(`${proxy} in front of the ${behind} passes on single requests, batches and lines`, async (t) => {
        const upstream = await startBehind(t, behind);
        const url = await startProxy(t, proxy, upstream);
        const { answers } = (await (await ask(`${url}/v1/systemone`, DECISION)).json()) as { answers: object };
        assert.deepEqual(Object.keys(answers), ['refund']);

        const batch = '/v1/systemone/batch';
        const direct = await resultsOf(await ask(`http://${upstream}${batch}`, BATCH));
        assert.equal(direct.length, STATES.length);
        assert.deepEqual(await resultsOf(await ask(url + batch, BATCH)), direct);
        const lines = await linesOf(await ask(url + batch, BATCH, 'application/x-ndjson'));
        assert.deepEqual(lines, direct);

        const refused = await fetch(`${url}/v1/systemone`, { method: 'POST', body: DECISION });
        assert.equal(refused.status, 401);
      });
    }
  }
});
