import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixture } from '../addon/model-folders.ts';
import { manyQuestions, THREE_TYPES } from '../addon/requests.ts';
import { slowModel } from '../model/live-model.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { LiveServer } from './live-server.ts';

const model = fixture('shared-state');

test('svc.json is made once: a second start reads it and leaves it as it is', async (t) => {
  const cwd = temporaryFolder(t);
  const file = join(cwd, 'svc.json');
  const first = await LiveServer.start(t, { cwd, model });
  await first.process.logged(/settings: [^"]*svc\.json made, with the defaults/);
  const before = [readFileSync(file, 'utf8'), statSync(file).mtimeMs];
  const second = await LiveServer.start(t, { cwd, model });
  await second.process.logged(/"settings: [^"]*svc\.json"/);
  assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mtimeMs], before);
  assert.deepEqual(readdirSync(cwd).sort(), ['svc.json', 'svc.password']);
});

suite('on a public address', () => {
  test('a key is generated into a file, wanted of every decision, and kept for the next start', async (t) => {
    const cwd = temporaryFolder(t);
    const options = { cwd, model, listen: '0.0.0.0:0' };
    const server = await LiveServer.start(t, options);
    const file = join(cwd, 'svc.api-key');
    const key = readFileSync(file, 'utf8').trim();
    assert.ok(key.length >= 16);
    if (process.platform !== 'win32') assert.equal(statSync(file).mode & 0o777, 0o600);

    for (const authorization of [undefined, 'Bearer wrong-key-wrong-key', `Basic ${key}`, `Bearer ${key}x`]) {
      const headers = authorization ? { Authorization: authorization } : {};
      const { status, headers: received, text } = await server.decide(THREE_TYPES, { headers });
      assert.deepEqual([status, text], [401, '{"error":"missing or wrong API key"}']);
      assert.equal(received['www-authenticate'], 'Bearer');
    }
    await server.answer(THREE_TYPES, { Authorization: `Bearer ${key}` });
    assert.equal((await server.get('/health')).status, 200);

    const again = await LiveServer.start(t, options);
    await again.answer(THREE_TYPES, { Authorization: `Bearer ${key}` });
  });

  test('allow_no_api_key turns it off', async (t) => {
    const server = await LiveServer.start(t, { model, listen: '0.0.0.0:0', env: { SVC_ALLOW_NO_API_KEY: '1' } });
    await server.answer(THREE_TYPES);
  });
});

// Windows has neither such files nor signals.
if (process.platform !== 'win32') {
  test('before the model is loaded requests get 503 with Retry-After, then answers', async (t) => {
    const { url, finish } = await slowModel(t, model);
    const env = { SVC_DATA: temporaryFolder(t) };
    const server = await LiveServer.start(t, { model: url, env, isLoading: true });
    const { status, headers, text } = await server.decide(THREE_TYPES);
    assert.deepEqual([status, headers['retry-after'], text], [503, '1', 'the model is loading']);
    const health = await server.get('/health');
    assert.deepEqual([health.status, JSON.parse(health.text).status], [503, 'loading']);
    assert.equal((await server.get('/readyz')).status, 503);
    assert.equal((await server.get('/livez')).status, 200);
    finish();
    await server.process.logged(/"msg":"model .+ loaded"/);
    await server.answer(THREE_TYPES);
    assert.equal((await server.get('/readyz')).status, 200);
    assert.equal(JSON.parse((await server.get('/health')).text).status, 'ok');
  });

  suite('SIGTERM', () => {
    test('lets running and queued requests finish, refuses new ones, and ends with 0', async (t) => {
      // The server waits for longer than the long request takes on a busy machine.
      const settings = { drain_ms: 60_000, allow_no_password: true };
      const server = await LiveServer.start(t, { args: ['--threads', '1'], settings });
      const alone = await server.answer(THREE_TYPES);
      const long = server.decide(manyQuestions(700));
      await isBusy(server, 0);
      const queued = [server.decide(THREE_TYPES), server.decide(THREE_TYPES)];
      await isBusy(server, 2);
      server.process.signal('SIGTERM');
      await server.process.logged(/SIGTERM: finishing the open requests/);
      // The listener closes a moment after this line is logged.
      await sleep(500);
      await assert.rejects(newConnection(server, THREE_TYPES), { code: 'ECONNREFUSED' });
      assert.equal((await long).status, 200);
      for (const reply of await Promise.all(queued)) {
        assert.equal(reply.status, 200);
        assert.equal(reply.headers.connection, 'close');
        assert.deepEqual(JSON.parse(reply.text).answers, JSON.parse(alone).answers);
      }
      const { code, signal, stderr } = await server.process.finished;
      assert.deepEqual([code, signal], [0, null]);
      assert.deepEqual(notLogLines(stderr), []);
    });

    test('while all goes on for drain_delay_ms is told by /readyz alone', async (t) => {
      // The delay is longer than two calls take on a busy machine.
      const server = await LiveServer.start(t, { model, settings: { drain_delay_ms: 3000 } });
      server.process.signal('SIGTERM');
      await server.process.logged(/SIGTERM: finishing the open requests/);
      assert.equal((await server.get('/readyz')).status, 503);
      assert.equal((await server.decide(THREE_TYPES)).status, 200);
      assert.equal((await server.process.finished).code, 0);
    });

    test('cuts off what is not finished after drain_ms, and still ends with 0', async (t) => {
      const settings = { drain_ms: 100, allow_no_password: true };
      const server = await LiveServer.start(t, { args: ['--threads', '1'], settings });
      const cut = Array.from({ length: 5 }, () => server.decide(manyQuestions(1000)).catch((error) => error.code));
      await isBusy(server, 4);
      const startMs = performance.now();
      server.process.signal('SIGTERM');
      const { code, stderr } = await server.process.finished;
      assert.equal(code, 0);
      // The five requests take far longer by themselves, and the default of drain_ms is 15 s.
      assert.ok(performance.now() - startMs < 10_000);
      assert.deepEqual(new Set(await Promise.all(cut)), new Set(['ECONNRESET']));
      assert.deepEqual(notLogLines(stderr), []);
    });

    test('in the middle of the load ends with 0, too', async (t) => {
      const { url, finish } = await slowModel(t, model);
      const env = { SVC_DATA: temporaryFolder(t) };
      const server = await LiveServer.start(t, { model: url, env, isLoading: true });
      server.process.signal('SIGTERM');
      await server.process.logged(/SIGTERM: finishing the open requests/);
      finish();
      assert.equal((await server.process.finished).code, 0);
    });

    test('at four moments of loading and answering ends with 0', async (t) => {
      for (let moment = 0; moment < 4; moment++) {
        const server = await LiveServer.start(t, { isLoading: true });
        const ask = async (): Promise<void> => {
          for (;;) await server.decide(THREE_TYPES);
        };
        const callers = [ask(), ask(), ask()].map((caller) => caller.catch(() => {}));
        await sleep(moment * 150);
        server.process.signal('SIGTERM');
        const { code, signal, stderr } = await server.process.finished;
        assert.deepEqual([code, signal, notLogLines(stderr)], [0, null, []], `after ${moment * 150} ms`);
        await Promise.all(callers);
      }
    });
  });
}

/** Resolves when a request is on the model and so many wait for it. */
async function isBusy(server: LiveServer, waiting: number): Promise<void> {
  await until(async () => {
    const { queue } = JSON.parse((await server.get('/stats')).text);
    return queue.running === 1 && queue.waiting === waiting;
  });
}

/** Sends a request on a new connection. */
function newConnection(server: LiveServer, body: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const { port } = server.url;
    request({ host: '127.0.0.1', port, agent: false, method: 'POST', path: '/v1/systemone' }, resolve)
      .on('error', reject)
      .end(body);
  });
}

/** Returns the lines on stderr that are not of the log, such as the last message of a crash. */
function notLogLines(stderr: string): string[] {
  return stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{"level":'));
}
