import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { EngineError } from '../../src/engine/contract.ts';
import { type Options, startServer } from './server-under-test.ts';

const POST = { method: 'POST', path: '/reload', body: '' };
const BASIC = { Authorization: `Basic ${Buffer.from('a:correct horse').toString('base64')}` };

suite('POST /reload', () => {
  test('answers with the health record when the reload is done', async (t) => {
    let reloads = 0;
    const reload = async () => {
      reloads += 1;
    };
    const { decide, get } = await startServer(t, { reload });
    const { status, text } = await decide(POST);
    assert.deepEqual([status, reloads], [200, 1]);
    assert.equal(text, (await get('/health')).text);
  });

  test('is behind the guard of the operator, and not to be had from another site', async (t) => {
    let reloads = 0;
    const reload = async () => {
      reloads += 1;
    };
    const statuses = async (options: Options, ...all: Record<string, string>[]) => {
      const { decide } = await startServer(t, { ...options, reload });
      return Promise.all(all.map(async (headers) => (await decide({ ...POST, headers })).status));
    };
    const foreign = { 'Sec-Fetch-Site': 'cross-site' };
    assert.deepEqual(await statuses({ password: 'correct horse' }, {}, { ...BASIC, ...foreign }), [401, 403]);
    const key = { Authorization: 'Bearer 0123456789abcdef' };
    const withKey = { apiKeys: ['0123456789abcdef'] };
    assert.deepEqual(await statuses(withKey, {}, BASIC, { ...key, ...foreign }), [401, 401, 403]);
    assert.equal(reloads, 0);
    assert.deepEqual(await statuses({ password: 'correct horse' }, BASIC), [200]);
    assert.deepEqual(await statuses(withKey, key), [200]);
    assert.equal(reloads, 2);
  });

  test('that fails gives 500 with the code of what went wrong, and not its text', async (t) => {
    for (const [error, code] of [
      [new EngineError({ code: 'bad_model', message: '/secret/path: no such file' }), 'bad_model'],
      [new Error('s3://key:secret@bucket'), 'load_failed'],
    ] as const) {
      const { decide } = await startServer(t, { reload: () => Promise.reject(error) });
      const { status, text } = await decide(POST);
      assert.deepEqual([status, text], [500, `the model was not replaced (${code}); the log has the reason`]);
    }
  });

  test('answers 202 at once where it has to wait for another, and /health says that it waits', async (t) => {
    const { decide, get, slot } = await startServer(t, {
      reload: () => {
        slot.reloadIs('queued');
        return { isQueued: true, done: new Promise(() => {}) };
      },
    });
    const { status, text } = await decide(POST);
    assert.deepEqual([status, JSON.parse(text).reload], [202, 'queued']);
    assert.equal(text, (await get('/health')).text);
    slot.reloadIs(undefined);
    assert.equal(JSON.parse((await get('/health')).text).reload, undefined);
  });

  test('gives 503 while the first model is loading, and 405 to GET', async (t) => {
    const { decide } = await startServer(t, { isLoading: true });
    const { status, text } = await decide(POST);
    assert.deepEqual([status, text], [503, 'the model is loading']);
    assert.equal((await decide({ ...POST, method: 'GET' })).status, 405);
  });
});
