import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import Koa from 'koa';
import { pino } from 'pino';
import { EngineSlot } from '../../src/model/slot.ts';
import { Lifecycle } from '../../src/server/lifecycle.ts';
import { createOperator } from '../../src/server/middleware/password.ts';
import { handleRequests, type RequestState } from '../../src/server/middleware/request.ts';
import { WrongGuesses } from '../../src/server/middleware/wrong-guesses.ts';
import { Secret } from '../../src/settings/secret.ts';
import { Metrics } from '../../src/stats/metrics.ts';
import { Stats } from '../../src/stats/stats.ts';

const PASSWORD = 'correct horse';
const KEY = 'k'.repeat(16);
const LOGIN = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`;

interface Options {
  readonly hasPassword?: boolean;
  readonly hasKey?: boolean;
}

/** Returns a function that calls an action and returns the status, which is 204 if the action ran. */
async function startAction(t: TestContext, { hasPassword = false, hasKey = false }: Options) {
  const { action } = createOperator({
    password: hasPassword ? new Secret(PASSWORD, 'test') : undefined,
    apiKeys: hasKey ? [new Secret(KEY, 'test')] : [],
    guesses: new WrongGuesses(),
  });
  const metrics = new Metrics({ stats: new Stats(), slot: new EngineSlot(), lostLines: () => 0 });
  const app = new Koa<RequestState>();
  app.use(handleRequests({ log: pino({ level: 'silent' }), lifecycle: new Lifecycle(), metrics }));
  app.use(action);
  app.use((ctx) => {
    ctx.status = 204;
  });
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const call = async (headers: Record<string, string> = {}) => {
    const response = await fetch(`${origin}/reload`, { method: 'POST', headers });
    return [response.status, response.headers.get('www-authenticate')];
  };
  return { origin, call };
}

suite("an operator's action", () => {
  test('runs for the password, and needs no API key then', async (t) => {
    const { call } = await startAction(t, { hasPassword: true, hasKey: true });
    assert.deepEqual(await call({ Authorization: LOGIN }), [204, null]);
    assert.deepEqual(await call(), [401, 'Basic realm="svc"']);
    assert.deepEqual(await call({ Authorization: `Bearer ${KEY}` }), [401, 'Basic realm="svc"']);
  });

  test('needs the API key where the password is off and the key is on', async (t) => {
    const { call } = await startAction(t, { hasKey: true });
    assert.deepEqual(await call(), [401, 'Bearer']);
    assert.deepEqual(await call({ Authorization: LOGIN }), [401, 'Bearer']);
    assert.deepEqual(await call({ Authorization: `Bearer ${KEY}` }), [204, null]);
  });

  test('is open where both are off', async (t) => {
    const { call } = await startAction(t, {});
    assert.deepEqual(await call(), [204, null]);
  });

  test('is refused to every other site, before any credential, and open to its own', async (t) => {
    const { call, origin } = await startAction(t, { hasPassword: true });
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { Origin: origin.replace(/\d+$/, '1') },
    ]) {
      assert.deepEqual(await call({ ...headers, Authorization: LOGIN } as Record<string, string>), [403, null]);
      assert.deepEqual(await call(headers as Record<string, string>), [403, null]);
    }
    assert.deepEqual(await call({ Origin: origin, 'Sec-Fetch-Site': 'same-origin', Authorization: LOGIN }), [
      204,
      null,
    ]);
  });
});
