import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Value } from 'typebox/value';
import { HealthSchema } from '../../src/schemas/health.ts';
import { ModelsSchema } from '../../src/schemas/wire.ts';
import { packageVersion } from '../../src/version.ts';
import { FakeEngine, MODEL_INFO } from '../fake-engine.ts';
import { startServer } from './server-under-test.ts';

const RFC_3339_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const UNKNOWN = {
  device: null,
  model: null,
  version: null,
  sha256: null,
  source: null,
  fallback: null,
  loaded_at: null,
  dir: null,
};

suite('GET /health', () => {
  test('gives the record of the loaded model, and no field that does not apply', async (t) => {
    const { get, slot } = await startServer(t);
    const { status, headers, text } = await get('/health');
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    const health = JSON.parse(text);
    assert.ok(Value.Check(HealthSchema, health));
    assert.match(String(health.loaded_at), RFC_3339_UTC);
    assert.deepEqual(health, {
      status: 'ok',
      device: 'cpu',
      model: 'fake',
      version: '1.2.3',
      sha256: MODEL_INFO.sha256,
      source: '/models/fake',
      fallback: false,
      loaded_at: slot.model?.loadedAt.toISOString(),
      dir: '/models/fake',
    });
  });

  test('gives 503 with nulls while the model is loading', async (t) => {
    const { get } = await startServer(t, { isLoading: true });
    const { status, headers, text } = await get('/health');
    assert.deepEqual([status, headers['retry-after']], [503, '1']);
    assert.deepEqual(JSON.parse(text), { status: 'loading', ...UNKNOWN });
    assert.ok(Value.Check(HealthSchema, JSON.parse(text)));
  });

  test('gives 503 with nulls when the model failed to load', async (t) => {
    const { get, slot } = await startServer(t, { isLoading: true });
    slot.failed('bad_model');
    const { status, text } = await get('/health');
    assert.equal(status, 503);
    assert.deepEqual(JSON.parse(text), { status: 'error', ...UNKNOWN });
  });

  test('gives 503 with the known fields once the server is asked to stop', async (t) => {
    const { get, lifecycle } = await startServer(t);
    lifecycle.advance('stopping');
    const { status, text } = await get('/health');
    const { status: word, model } = JSON.parse(text);
    assert.deepEqual([status, word, model], [503, 'draining', 'fake']);
  });

  test('stays ok when a later model fails to load, and says so until one is loaded', async (t) => {
    const { get, slot, decide, engine } = await startServer(t);
    slot.failed('bad_model');
    const { status, text } = await get('/health');
    const health = JSON.parse(text);
    assert.ok(Value.Check(HealthSchema, health));
    assert.deepEqual([status, health.status, health.failed_reload?.code], [200, 'ok', 'bad_model']);
    assert.match(String(health.failed_reload?.failed_at), RFC_3339_UTC);
    assert.equal((await decide()).status, 200);
    slot.loaded(engine, { source: '/models/fake' });
    assert.equal(JSON.parse((await get('/health')).text).failed_reload, undefined);
  });

  test('tells a new state of the source without another model', async (t) => {
    const { get, slot } = await startServer(t);
    const before = JSON.parse((await get('/health')).text);
    slot.sourceIs({ offline: true, remoteVersion: '2' });
    assert.deepEqual(JSON.parse((await get('/health')).text), { ...before, offline: true, remote_version: '2' });
    slot.sourceIs({ offline: false });
    assert.deepEqual(JSON.parse((await get('/health')).text), before);
  });

  test('describes the model that was replaced, and a remote source', async (t) => {
    const { get, slot } = await startServer(t);
    const before = slot.model?.loadedAt.toISOString();
    const origin = { source: 's3://bucket/newer', fallback: true, remoteVersion: '2.1', offline: true };
    slot.loaded(new FakeEngine({ name: 'newer', version: '2.0' }), origin);
    const health = JSON.parse((await get('/health')).text);
    assert.ok(Value.Check(HealthSchema, health));
    const { model, version, fallback, remote_version, offline, previous } = health;
    assert.deepEqual(
      { model, version, fallback, remote_version, offline, previous },
      {
        model: 'newer',
        version: '2.0',
        fallback: true,
        remote_version: '2.1',
        offline: true,
        previous: { model: 'fake', version: '1.2.3', sha256: MODEL_INFO.sha256, loaded_at: before },
      },
    );
  });

  for (const [source, shown] of [
    ['https://user:pass@models.example/a.tar?token=secret#x', 'https://models.example/a.tar'],
    ['s3://key:secret@bucket/folder', 's3://bucket/folder'],
    ['https://user:pa@ss@[bad/a?token=secret', 'https://[bad/a'],
    ['C:\\models\\a', 'C:\\models\\a'],
    ['/models/a?b', '/models/a?b'],
  ] as const) {
    test(`shows the source ${source} as ${shown}`, async (t) => {
      const { get, slot } = await startServer(t);
      slot.loaded(new FakeEngine(), { source });
      assert.equal(JSON.parse((await get('/health')).text).source, shown);
    });
  }
});

suite('the probes', () => {
  test('are alive and ready when a model is loaded', async (t) => {
    const { get } = await startServer(t);
    for (const path of ['/livez', '/readyz']) {
      const { status, text, headers } = await get(path);
      assert.deepEqual([status, text], [200, 'ok']);
      assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
    }
  });

  test('are alive but not ready while the model is loading', async (t) => {
    const { get } = await startServer(t, { isLoading: true });
    const { status, text, headers } = await get('/readyz');
    assert.deepEqual([status, text, headers['retry-after']], [503, 'the model is loading', '1']);
    assert.equal((await get('/livez')).status, 200);
  });

  test('are alive but not ready once the server is asked to stop, while decisions go on', async (t) => {
    const { get, decide, lifecycle } = await startServer(t);
    lifecycle.advance('stopping');
    const { status, text } = await get('/readyz');
    assert.deepEqual([status, text], [503, 'the server is shutting down']);
    assert.equal((await get('/livez')).status, 200);
    assert.equal((await decide()).status, 200);
  });
});

suite('GET /v1/models', () => {
  test('names the one model in the shape of this API and of OpenAI', async (t) => {
    const { get, slot } = await startServer(t);
    const { status, text } = await get('/v1/models');
    const loadedAt = slot.model?.loadedAt ?? new Date(0);
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(text), {
      models: [{ name: 'svc', description: 'fake 1.2.3', release_date: loadedAt.toISOString().slice(0, 10) }],
      object: 'list',
      data: [{ id: 'svc', object: 'model', created: Math.floor(loadedAt.getTime() / 1000), owned_by: 'svc' }],
    });
    assert.ok(Value.Check(ModelsSchema, JSON.parse(text)));
  });

  test('gives 503 while the model is loading', async (t) => {
    const { get } = await startServer(t, { isLoading: true });
    assert.equal((await get('/v1/models')).status, 503);
  });
});

suite('GET /v1/models/{id}', () => {
  test('is the entry of the list, and nothing for another id', async (t) => {
    const { get } = await startServer(t);
    const { data } = JSON.parse((await get('/v1/models')).text);
    const { status, text } = await get('/v1/models/svc');
    assert.deepEqual([status, JSON.parse(text)], [200, data[0]]);
    for (const id of ['jev-latest', 'svc%20', 'SVC', 'sv%63']) {
      const other = await get(`/v1/models/${id}`);
      assert.deepEqual([other.status, other.text], [404, 'no such model; there is only svc'], id);
    }
    const json = await get('/v1/models/other', { Accept: 'application/json' });
    assert.equal(JSON.parse(json.text).error.message, 'no such model; there is only svc');
  });

  test('needs the key, and a loaded model', async (t) => {
    const { get } = await startServer(t, { apiKeys: ['key'], isLoading: true });
    assert.equal((await get('/v1/models/svc')).status, 401);
    assert.equal((await get('/v1/models/svc', { Authorization: 'Bearer key' })).status, 503);
  });
});

test('GET /version is the version of the server, open to everyone', async (t) => {
  const { get } = await startServer(t, { apiKeys: ['key'], password: 'password', isLoading: true });
  const { status, text } = await get('/version');
  assert.deepEqual([status, JSON.parse(text)], [200, { version: packageVersion() }]);
});

suite('every GET route', () => {
  for (const path of ['/health', '/livez', '/readyz', '/v1/models', '/v1/models/svc', '/version']) {
    test(`${path} answers HEAD with the headers of GET and no body`, async (t) => {
      const { get, decide } = await startServer(t);
      const full = await get(path);
      const { status, headers, text } = await decide({ method: 'HEAD', path, body: '' });
      assert.deepEqual([status, text], [200, '']);
      assert.equal(headers['content-length'], String(full.text.length));
      assert.equal(headers['content-type'], full.headers['content-type']);
    });

    test(`${path} refuses POST with 405 and Allow`, async (t) => {
      const { decide } = await startServer(t);
      const { status, headers } = await decide({ path });
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD']);
    });
  }

  test('/readyz answers HEAD with 503 while the model is loading', async (t) => {
    const { decide } = await startServer(t, { isLoading: true });
    assert.equal((await decide({ method: 'HEAD', path: '/readyz' })).status, 503);
  });
});
