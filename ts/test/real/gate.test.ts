import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { ServerProcess } from '../../src/commands/server-process.ts';
import { fixture } from '../addon/model-folders.ts';
import { freePort } from '../free-port.ts';
import { listen } from '../gate/gate-under-test.ts';
import { runSvc, type SvcOptions, SvcProcess } from '../svc-process.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';

const KEY = 'the-key-of-the-gate';
const BODY = '{"state":"I was charged twice.","questions":{"q":{"type":"noul","instructions":"Is it?"}}}';
const BEARER = { authorization: `Bearer ${KEY}` };

interface GateProcess {
  readonly gate: SvcProcess;
  readonly url: string;
  /** The URL of the server beside the gate. */
  readonly upstream: string;
}

/** Starts `svc gate --run` on free ports. */
async function start(t: TestContext, options: Partial<SvcOptions> & { readonly args?: readonly string[] } = {}) {
  const upstream = `http://127.0.0.1:${await freePort()}`;
  const { args = [], env, cwd = temporaryFolder(t) } = options;
  const all = ['gate', '--run', '--listen', '127.0.0.1:0', '--upstream', upstream, '--device', 'cpu', ...args];
  const gate = new SvcProcess(t, all, { cwd, env: { GATE_API_KEY: KEY, SVC_MODEL: fixture('marker'), ...env } });
  return { gate, upstream };
}

async function started(t: TestContext, options = {}): Promise<GateProcess> {
  const { gate, upstream } = await start(t, options);
  // The server beside the gate says first where it listens.
  const [, url = ''] = await gate.logged(/listening on .*listening on (http:[^"\s]+)/s);
  return { gate, url, upstream };
}

/** Returns the process id of the server beside the gate. */
async function serverPid(gate: SvcProcess): Promise<number> {
  return Number((await gate.logged(/the server beside the gate is process (\d+)/))[1]);
}

async function isGone(url: string): Promise<boolean> {
  return fetch(`${url}/livez`).then(
    () => false,
    () => true,
  );
}

/** Begins a request without sending its body, and returns it when the gate has received it. */
async function openRequest(url: string): Promise<ClientRequest> {
  const headers = { ...BEARER, expect: '100-continue' };
  const open = request(`${url}/v1/systemone`, { method: 'POST', headers, agent: false });
  open.flushHeaders();
  await once(open, 'continue');
  open.on('error', () => {});
  return open;
}

/** Resolves when nothing answers at `url` any more. */
function ends(url: string): Promise<void> {
  return until(() => isGone(url));
}

suite('svc gate --run', { concurrency: 2 }, () => {
  test('answers decisions with the key, and nothing but /health without it', async (t) => {
    const { url } = await started(t);
    const decision = await fetch(`${url}/v1/systemone`, { method: 'POST', body: BODY, headers: BEARER });
    assert.equal(decision.status, 200);
    assert.match(decision.headers.get('server-timing') ?? '', /^encode;dur=/);
    assert.match(await decision.text(), /^\{"model":"svc",/);
    const refused = await fetch(`${url}/v1/systemone`, { method: 'POST', body: BODY });
    assert.equal(refused.status, 401);
    assert.equal(await refused.text(), '{"error":"missing or wrong API key"}');
    const health = (await (await fetch(`${url}/health`)).json()) as { status: string };
    assert.equal(health.status, 'ok');
    for (const path of ['/', '/stats', '/metrics', '/livez']) {
      assert.equal((await fetch(`${url}${path}`, { headers: BEARER })).status, 404);
    }
  });

  test('has its own key alone, whatever keys the server has, and tells none', async (t) => {
    const env = { SVC_API_KEY: 'the-key-of-the-server', SVC_PASSWORD: 'hidden-password' };
    const cwd = folderWithConfig(t, { api_key: 'a-key-of-the-settings' });
    const { gate, url, upstream } = await started(t, { env, cwd });
    assert.equal((await fetch(`${url}/v1/models`, { headers: BEARER })).status, 200);
    assert.equal((await fetch(`${upstream}/v1/models`)).status, 200);
    if (process.platform === 'linux') {
      const environment = readFileSync(`/proc/${await serverPid(gate)}/environ`, 'utf8');
      assert.match(environment, /\0SVC_PASSWORD=hidden-password\0/);
      assert.doesNotMatch(environment, /the-key-of/);
      // Behind the gate there is no load balancer to wait for, so the server gets no drain delay.
      assert.match(environment, /\0SVC_DRAIN_DELAY_MS=0\0/);
    }
    gate.signal('SIGTERM');
    const { stderr } = await gate.finished;
    assert.doesNotMatch(stderr, /the-key-of|a-key-of|hidden/);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} ends both in order, with 0`, async (t) => {
      const { gate, upstream } = await started(t);
      gate.signal(signal);
      const { code, stderr } = await gate.finished;
      assert.equal(code, 0, stderr);
      assert.ok(await isGone(upstream));
      // The gate says this first and then the server, each of them once.
      const told = [...stderr.matchAll(/"(SIG\w+): finishing the open requests/g)].map(([, name]) => name);
      assert.deepEqual(told, [signal, 'SIGTERM']);
    });
  }

  test('SIGTERM lets a request that is open come to its end, then ends both with 0', async (t) => {
    const { gate, url } = await started(t);
    const states = Array.from({ length: 200 }, (_, n) => `Ticket ${n}`);
    const questions = { q: { type: 'noul', instructions: 'Is it?' } };
    const response = await fetch(`${url}/v1/systemone/batch`, {
      method: 'POST',
      body: JSON.stringify({ states, questions }),
      headers: { ...BEARER, accept: 'application/x-ndjson' },
    });
    gate.signal('SIGTERM');
    await gate.logged(/SIGTERM: finishing/);
    const lines = (await response.text()).trimEnd().split('\n');
    assert.ok(lines.length >= states.length);
    assert.equal((await gate.finished).code, 0);
  });

  test('takes the names of allowed_hosts, and no other, on loopback', async (t) => {
    const { url, upstream } = await started(t, { env: { SVC_ALLOWED_HOSTS: 'svc.internal' } });
    for (const at of [url, upstream]) {
      assert.deepEqual(
        [await statusOf(at, 'svc.internal'), await statusOf(at, 'localhost'), await statusOf(at, 'evil.example')],
        [200, 200, 403],
      );
    }
  });

  test('SIGTERM while the server starts ends both with 0', async (t) => {
    const { gate, upstream } = await start(t);
    await gate.logged(/the server is at/);
    gate.signal('SIGTERM');
    assert.equal((await gate.finished).code, 0);
    assert.ok(await isGone(upstream));
  });

  if (process.platform !== 'win32') {
    test('SIGTERM while the server is frozen and a request is open ends both within drain_ms', async (t) => {
      const cwd = folderWithConfig(t, { drain_ms: 2000, drain_delay_ms: 100 });
      const { gate, url } = await started(t, { cwd });
      const pid = await serverPid(gate);
      process.kill(pid, 'SIGSTOP');
      const open = await openRequest(url);
      open.end(BODY);
      const startMs = performance.now();
      gate.signal('SIGTERM');
      const { code, stderr } = await gate.finished;
      const ms = performance.now() - startMs;
      assert.equal(code, 0);
      assert.match(stderr, /did not end in time and was killed/);
      assert.throws(() => process.kill(pid, 0));
      // The gate once waited far longer than the time of both drains together.
      assert.ok(ms > 1500 && ms < 10_000, `${ms} ms`);
    });
  }

  test('a second signal ends both at once', async (t) => {
    const { gate, url, upstream } = await started(t);
    // A request that never ends keeps the drain waiting.
    (await openRequest(url)).write('{');
    gate.signal('SIGTERM');
    await gate.logged(/SIGTERM: finishing/);
    gate.signal('SIGTERM');
    assert.equal((await gate.finished).code, 143);
    await ends(upstream);
  });

  test('the end of the server is the end of the gate, with 1 and one line', async (t) => {
    const { gate, url, upstream } = await started(t);
    process.kill(await serverPid(gate), 'SIGKILL');
    const { code, stderr } = await gate.finished;
    assert.equal(code, 1);
    assert.match(
      stderr.trim().split('\n').at(-1) ?? '',
      /"msg":"the server beside the gate has ended \(SIGKILL\), so the gate ends"/,
    );
    assert.ok(await isGone(url));
    assert.ok(await isGone(upstream));
  });

  test('the end of the gate, however it comes, is the end of the server', async (t) => {
    const { gate, upstream } = await started(t);
    gate.signal('SIGKILL');
    await gate.finished;
    await ends(upstream);
  });

  test('a server that does not start is told in one line, with 1', async (t) => {
    const { gate } = await start(t, { args: ['--model', 'no-such-folder'] });
    const { code, stderr } = await gate.finished;
    assert.equal(code, 1);
    assert.equal(stderr.trim().split('\n').at(-1), 'the server beside the gate did not start: exit code 1');
  });

  test('an address that another process has is refused before anything starts', async (t) => {
    const port = await listen(t, createServer());
    const { gate } = await start(t, { args: ['--upstream', `http://127.0.0.1:${port}`] });
    const { code, stderr } = await gate.finished;
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use`));
    assert.doesNotMatch(stderr, /the server beside the gate/);
  });
});

suite('a server beside the gate that hangs', () => {
  /** Starts a server on a free port and stops its process before it can listen. */
  async function hanging(t: TestContext): Promise<ServerProcess> {
    const upstream = new URL(`http://127.0.0.1:${await freePort()}`);
    const env = { ...process.env, SVC_PASSWORD: 'hidden-password', SVC_LOG_LEVEL: 'fatal' };
    const server = await ServerProcess.start(upstream, { config: join(temporaryFolder(t), 'svc.json') }, env);
    const { pid = assert.fail() } = server;
    process.kill(pid, 'SIGSTOP');
    t.after(() => {
      // If the test passes, the process has already ended.
      try {
        process.kill(pid, 'SIGKILL');
      } catch {}
    });
    return server;
  }

  if (process.platform !== 'win32') {
    test('is told of again and again, and killed when its time is up', { timeout: 60_000 }, async (t) => {
      const server = await hanging(t);
      let told = 0;
      const ready = server.ready(() => {
        told += 1;
      }, 20);
      await until(() => told >= 3);
      assert.equal(await server.stop(50), false);
      assert.equal(await server.ended, 'SIGKILL');
      assert.equal(await ready, false);
      const before = told;
      await new Promise((done) => setTimeout(done, 100));
      assert.equal(told, before);
    });
  }
});

if (Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))) {
  suite('IPv6', { concurrency: 2 }, () => {
    test('[::1] is loopback for gate and server: no key is needed, the Host must be this machine', async (t) => {
      const upstream = `http://[::1]:${await freePort()}`;
      const { gate } = await start(t, { args: ['--listen', '[::1]:0', '--upstream', upstream] });
      const [, url = ''] = await gate.logged(/listening on .*listening on (http:[^"\s]+)/s);
      assert.match(url, /^http:\/\/\[::1\]:\d+$/);
      for (const at of [url, upstream]) {
        assert.equal(await statusOf(at, 'localhost'), 200);
        assert.equal(await statusOf(at, '[::1]:1'), 200);
        assert.equal(await statusOf(at, '[::1]'), 200);
        assert.equal(await statusOf(at, 'evil.example'), 403);
        assert.equal(await statusOf(at, '[2001:db8::1]'), 403);
      }
      assert.equal((await fetch(`${upstream}/v1/models`)).status, 200);
    });

    test('[::] is for other machines: a key is needed, and any Host will do', async (t) => {
      const args = ['serve', '--listen', '[::]:0', '--device', 'cpu'];
      const server = new SvcProcess(t, args, { cwd: temporaryFolder(t) });
      await server.logged(/API key .*svc\.api-key/);
      const url = await server.url();
      const [, port] = /^http:\/\/\[::\]:(\d+)$/.exec(url) ?? assert.fail(url);
      await server.logged(/model .* loaded/);
      for (const host of ['[::1]', '127.0.0.1']) {
        assert.equal((await fetch(`http://${host}:${port}/v1/models`)).status, 401);
        assert.equal(await statusOf(`http://${host}:${port}`, 'svc.example'), 200);
      }
    });
  });
}

/** Returns the status of `/health`, asked for by the name `host`. */
async function statusOf(url: string, host: string): Promise<number | undefined> {
  const [res] = (await once(request(`${url}/health`, { headers: { host }, agent: false }).end(), 'response')) as [
    IncomingMessage,
  ];
  res.resume();
  return res.statusCode;
}

suite('svc gate', { concurrency: 2 }, () => {
  test('refuses to start without a key, and with a wrong one, in one line', async (t) => {
    const cwd = temporaryFolder(t);
    const none = await runSvc(t, ['gate'], { cwd });
    assert.equal(none.stderr, 'GATE_API_KEY is not set: give a key of at least 16 characters, or --no-key\n');
    assert.equal(none.code, 1);
    const short = await runSvc(t, ['gate'], { cwd, env: { GATE_API_KEY: 'short' } });
    assert.equal(short.stderr, 'api key from GATE_API_KEY is 5 characters; use at least 16\n');
    assert.equal(short.code, 1);
  });

  test('stands in front of a server that runs by itself, and makes no file', async (t) => {
    const server = new SvcProcess(t, ['serve', '--listen', '127.0.0.1:0', '--device', 'cpu'], {
      cwd: temporaryFolder(t),
    });
    await server.logged(/model .* loaded/);
    const args = ['gate', '--no-key', '--listen', '127.0.0.1:0', '--upstream', await server.url()];
    const gate = new SvcProcess(t, args, { cwd: temporaryFolder(t) });
    const url = await gate.url();
    const decision = await fetch(`${url}/v1/systemone`, { method: 'POST', body: BODY });
    assert.equal(decision.status, 200);
    gate.signal('SIGTERM');
    assert.equal((await gate.finished).code, 0);
    assert.ok(!(await isGone(await server.url())));
  });
});
