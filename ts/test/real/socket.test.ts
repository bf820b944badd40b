import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { fixture } from '../addon/model-folders.ts';
import { runSvc, SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MODEL = fixture('marker');
const KEY = 'a-key-of-the-socket';
const REQUEST = JSON.stringify({
  state: 'I was charged twice.',
  questions: { refund: { type: 'noul', instructions: 'Does the customer want money back?' } },
});

interface OnSocket {
  readonly process: SvcProcess;
  readonly folder: string;
  readonly socket: string;
  /** Asks for a decision over the socket, and returns the status. */
  decide(headers?: Record<string, string>): Promise<number>;
}

const argsAt = (socket: string) => ['serve', '--listen', `unix:${socket}`, '--device', 'cpu', '--model', MODEL];

async function startOnSocket(t: TestContext, env: Record<string, string> = {}): Promise<OnSocket> {
  const folder = temporaryFolder(t);
  const socket = join(folder, 'svc.sock');
  const args = argsAt(socket);
  const svc = new SvcProcess(t, args, { cwd: folder, env });
  await svc.logged(/"msg":"model .+ loaded"/);
  await svc.logged(new RegExp(`listening on unix:${socket}"`));
  return { process: svc, folder, socket, decide: (headers) => statusOf(socket, headers) };
}

async function statusOf(socketPath: string, headers: Record<string, string> = {}): Promise<number> {
  const sent = request({ socketPath, method: 'POST', path: '/v1/systemone', headers }).end(REQUEST);
  const [answer] = await once(sent, 'response');
  await buffer(answer);
  return answer.statusCode;
}

if (process.platform !== 'win32') {
  suite('a server on a unix socket', { timeout: 120_000 }, () => {
    test('answers its owner without a key, whatever the Host, and takes its file with it', async (t) => {
      const server = await startOnSocket(t);
      await server.process.logged(/API key off: only its owner can connect to unix:\/.*svc\.sock and no key is set/);
      assert.equal(statSync(server.socket).mode & 0o777, 0o600);
      for (const host of ['localhost', 'anything.example', '192.0.2.1:80'])
        assert.equal(await server.decide({ host }), 200);
      server.process.signal('SIGTERM');
      assert.equal((await server.process.finished).code, 0);
      assert.equal(existsSync(server.socket), false);
    });

    test('ends without a harm to the server that has taken its place', async (t) => {
      const old = await startOnSocket(t);
      rmSync(old.socket);
      const svc = new SvcProcess(t, argsAt(old.socket), { cwd: old.folder });
      await svc.logged(/"msg":"model .+ loaded"/);
      old.process.signal('SIGTERM');
      assert.equal((await old.process.finished).code, 0);
      assert.equal(await statusOf(old.socket), 200);
    });

    test('wants a key once others can connect, and makes one', async (t) => {
      const server = await startOnSocket(t, { SVC_LISTEN_MODE: '0660', SVC_API_KEY: KEY });
      assert.equal(statSync(server.socket).mode & 0o777, 0o660);
      assert.equal(await server.decide(), 401);
      assert.equal(await server.decide({ authorization: `Bearer ${KEY}` }), 200);
      const generated = await startOnSocket(t, { SVC_LISTEN_MODE: '0660' });
      assert.equal(await generated.decide(), 401);
      assert.ok(existsSync(join(generated.folder, 'svc.api-key')));
    });

    test('starts again where it was killed', async (t) => {
      const killed = await startOnSocket(t);
      killed.process.signal('SIGKILL');
      await killed.process.finished;
      assert.ok(existsSync(killed.socket));
      const next = new SvcProcess(t, argsAt(killed.socket), { cwd: killed.folder });
      await next.logged(/"msg":"model .+ loaded"/);
      assert.equal(await killed.decide(), 200);
    });

    test('is named by ask, batch, bench, health, doctor and the gate', async (t) => {
      const { folder, socket, process: svc } = await startOnSocket(t);
      const url = `unix:${socket}`;
      const asked = await runSvc(t, ['ask', '-', '--url', url, '--json'], { cwd: folder, input: REQUEST });
      assert.equal(asked.code, 0, asked.stderr);
      assert.equal(JSON.parse(asked.stdout).model, 'svc');

      writeFileSync(join(folder, 'rows.jsonl'), '{"text":"I was charged twice."}\n{"text":"Hello."}\n');
      writeFileSync(join(folder, 'q.json'), JSON.stringify(JSON.parse(REQUEST).questions));
      const batch = await runSvc(t, ['batch', 'rows.jsonl', '--questions', 'q.json', '--url', url], { cwd: folder });
      assert.equal(batch.code, 0, batch.stderr);

      const bench = await runSvc(t, ['bench', url, '--seconds', '1', '--concurrency', '2', '--json'], { cwd: folder });
      assert.equal(bench.code, 0, bench.stderr);
      const { server, answers } = JSON.parse(bench.stdout);
      assert.deepEqual([server, answers > 0], [url, true]);

      const well = await runSvc(t, ['health', '--listen', url], { cwd: folder });
      assert.deepEqual([well.code, well.stdout], [0, 'ok\n']);
      const found = await runSvc(t, ['doctor', '--listen', url, '--json'], { cwd: folder });
      const { findings } = JSON.parse(found.stdout) as {
        findings: { check: string; status: string; message: string }[];
      };
      const port = findings.find(({ check }) => check === 'port');
      assert.equal(port?.status, 'warning');
      assert.match(port?.message ?? '', /^unix:\/.*svc\.sock is taken by a server that is running \(status ok, model /);

      const front = join(folder, 'gate.sock');
      const gate = new SvcProcess(t, ['gate', '--listen', `unix:${front}`, '--upstream', url], {
        cwd: folder,
        env: { GATE_API_KEY: KEY },
      });
      await gate.logged(/listening on unix:\/.*gate\.sock/);
      assert.equal(await statusOf(front), 401);
      assert.equal(await statusOf(front, { authorization: `Bearer ${KEY}` }), 200);

      svc.signal('SIGTERM');
      await svc.finished;
      const gone = await runSvc(t, ['ask', '-', '--url', url], { cwd: folder, input: REQUEST });
      assert.match(gone.stderr, /^cannot reach unix:\/.*svc\.sock: ENOENT\n$/);
    });

    test('is started beside the gate, and two at one place are told apart', async (t) => {
      const folder = temporaryFolder(t);
      const [front, behind] = [join(folder, 'gate.sock'), join(folder, 'svc.sock')];
      const own = ['gate', '--listen', `unix:${behind}`, '--upstream', `unix:${behind}`];
      const loop = await runSvc(t, own, { cwd: folder, env: { GATE_API_KEY: KEY } });
      assert.match(loop.stderr, /--upstream: unix:\/.*svc\.sock is the gate itself, which listens on unix:/);
      const args = ['gate', '--run', '--listen', `unix:${front}`, '--upstream', `unix:${behind}`, '--device', 'cpu'];
      const gate = new SvcProcess(t, args, { cwd: folder, env: { GATE_API_KEY: KEY, SVC_THREADS: '1' } });
      await gate.logged(/listening on unix:\/.*gate\.sock/);
      assert.equal(statSync(behind).mode & 0o777, 0o600);
      assert.equal(await statusOf(front, { authorization: `Bearer ${KEY}` }), 200);
      const second = await runSvc(t, ['serve', '--listen', `unix:${front}`], { cwd: folder });
      assert.match(second.stderr, /cannot listen on unix:\/.*gate\.sock: a server listens there/);
      gate.signal('SIGTERM');
      assert.equal((await gate.finished).code, 0);
    });
  });
}
