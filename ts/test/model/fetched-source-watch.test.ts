import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { SourceError } from '../../src/model/source-error.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { HostileServer } from './hostile-server.ts';
import {
  configOf,
  filesOf,
  isEmbedded,
  Listener,
  never,
  publish,
  serverWith,
  sourceOf,
  watching,
} from './source-under-test.ts';

suite('a source that is watched', () => {
  test('gives the newer model when there is one, by its tag and by its manifest', async (t) => {
    for (const path of ['/m.tar.gz', '/manifest.json']) {
      const server = await serverWith(t);
      const source = sourceOf(t, server.url + path, { refreshMs: 5 });
      await source.accept(await source.find(never));
      const listener = new Listener().watch(t, source);
      publish(server, filesOf('2'));
      await listener.until(({ models }) => models.length > 0);
      assert.deepEqual(
        listener.models.map((model) => [configOf(model).version, model.remoteVersion]),
        [['2', '2']],
      );
      const requests = server.requests.length;
      await until(() => server.requests.length >= requests + 5);
      assert.equal(listener.models.length, 1);
    }
  });

  test('says that it is away and back, once each, and the model stays', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5 });
    await source.accept(await source.find(never));
    const listener = new Listener().watch(t, source);
    server.on('/m.tar.gz', (_, response) => response.writeHead(500).end());
    await listener.until(({ statuses }) => statuses.length > 0);
    const requests = server.requests.length;
    await until(() => server.requests.length >= requests + 5);
    publish(server, filesOf('1'));
    await listener.until(({ statuses }) => statuses.length > 1);
    assert.deepEqual(listener.statuses, [
      { offline: true, remoteVersion: '1' },
      { offline: false, remoteVersion: '1' },
    ]);
    assert.deepEqual(listener.notes, [`${server.url}/m.tar.gz: status 500`]);
    assert.deepEqual(listener.models, []);
  });

  test('says anew what has changed since a reload said it', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5 });
    await source.accept(await source.find(never));
    server.on('/m.tar.gz', (_, response) => response.writeHead(500).end());
    await assert.rejects(source.refresh(never));
    assert.deepEqual(source.report(), { offline: true, remoteVersion: '1' });
    // The listener is not told again that a reported outage began, but it is told that the outage is over.
    publish(server, filesOf('1'));
    await source.accept(await source.refresh(never));
    const listener = new Listener().watch(t, source);
    server.on('/m.tar.gz', (_, response) => response.writeHead(500).end());
    await listener.until(({ statuses }) => statuses.length > 0);
    assert.deepEqual(listener.statuses, [{ offline: true, remoteVersion: '1' }]);
    await assert.rejects(source.refresh(never));
    assert.equal(source.report().offline, true);
    publish(server, filesOf('1'));
    await listener.until(({ statuses }) => statuses.length > 1);
    assert.deepEqual(listener.statuses.at(-1), { offline: false, remoteVersion: '1' });
  });

  test('is asked again until the wanted model is there, although no newer ones are looked for', async (t) => {
    const server = await HostileServer.start(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`);
    const first = await source.find(never);
    assert.deepEqual([isEmbedded(first), first.offline], [true, true]);
    await source.accept(first);
    const listener = new Listener().watch(t, source);
    await until(() => server.requests.length >= 3);
    publish(server, filesOf('1'));
    await listener.until(({ models, statuses }) => models.length > 0 && statuses.length > 0);
    assert.deepEqual(
      listener.models.map((model) => [configOf(model).version, model.fallback, model.offline]),
      [['1', false, false]],
    );
    assert.deepEqual(listener.statuses.at(-1), { offline: false, remoteVersion: '1' });
  });

  test('is not asked again once the wanted model is there and no newer ones are looked for', async (t) => {
    const server = await HostileServer.start(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`);
    await source.accept(await source.find(never));
    publish(server, filesOf('1'));
    const listener = new Listener();
    let hasEnded = false;
    void source.watch(listener, watching(t)).then(() => {
      hasEnded = true;
    });
    await listener.until(({ models }) => models.length > 0);
    const requests = server.requests.length;
    await until(() => hasEnded || server.requests.length > requests + 1);
    assert.ok(hasEnded);
  });

  test('is not asked again before the time that it has named', async (t) => {
    const askedMs: number[] = [];
    const fetch = async () => {
      askedMs.push(performance.now());
      throw new SourceError('the hub limits requests', { isAway: true, retryMs: 300 });
    };
    const source = sourceOf(t, 'https://server.example/m.tar.gz', { fetch });
    await source.accept(await source.find(never));
    new Listener().watch(t, source);
    await until(() => askedMs.length > 1);
    const [first = 0, second = 0] = askedMs;
    // The timers of Node may be a millisecond early.
    assert.ok(second - first > 298, `${second - first} ms`);
  });

  test('starts with the last good one while the source is slow, and says so until it has answered', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const before = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    await before.accept(await before.find(never));
    let answer = () => {};
    server.on('/m.tar.gz', (_, response) => {
      answer = () => response.writeHead(304).end();
    });
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    const model = await source.find(never);
    assert.deepEqual([configOf(model).version, model.offline, model.fallback], ['1', true, false]);
    await source.accept(model);
    const listener = new Listener().watch(t, source);
    const requests = server.requests.length;
    await until(() => server.requests.length > requests);
    answer();
    await listener.until(({ statuses }) => statuses.length > 0);
    assert.deepEqual(listener.statuses, [{ offline: false, remoteVersion: '1' }]);
  });

  test('offers a model that cannot be taken once, and says why; the version is known', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5 });
    await source.accept(await source.find(never));
    const listener = new Listener();
    listener.take = async () => {
      throw new Error('it does not fit');
    };
    listener.watch(t, source);
    publish(server, filesOf('2'));
    await listener.until(({ notes, statuses }) => notes.length > 0 && statuses.length > 0);
    const requests = server.requests.length;
    await until(() => server.requests.length >= requests + 3);
    assert.equal(listener.models.length, 1);
    assert.deepEqual(listener.statuses[0], { offline: false, remoteVersion: '2' });
    publish(server, filesOf('3'));
    listener.take = async () => {};
    await listener.until(({ models }) => models.length > 1);
    assert.deepEqual(
      listener.models.map((model) => configOf(model).version),
      ['2', '3'],
    );
  });

  test('says that what it offers is not taken, and when that is over', async (t) => {
    const server = await serverWith(t);
    const prove = async (folder: string) => {
      if (JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).version === '2') throw new Error('it is wrong');
    };
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { refreshMs: 5, prove });
    await source.accept(await source.find(never));
    const listener = new Listener().watch(t, source);
    publish(server, filesOf('2'));
    await listener.until(({ statuses }) => statuses.length === 1);
    publish(server, filesOf('1'));
    await listener.until(({ statuses }) => statuses.length === 2);
    assert.deepEqual(listener.statuses, [
      { offline: false, remoteVersion: '2', isRefused: true },
      { offline: false, remoteVersion: '1' },
    ]);
    assert.equal(listener.models.length, 0);
  });

  test('does not note as good what nobody has taken any more', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder, refreshMs: 5 });
    await source.accept(await source.find(never));
    const stop = new AbortController();
    publish(server, filesOf('2'));
    const listener = new Listener();
    listener.take = async () => stop.abort();
    const alive = setInterval(() => {}, 1000);
    await source.watch(listener, stop.signal);
    clearInterval(alive);
    assert.deepEqual(
      listener.models.map((model) => configOf(model).version),
      ['2'],
    );
    server.stop();
    assert.equal(configOf(await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never)).version, '1');
  });

  test('does not take for good an offer that was old when its turn came', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder, refreshMs: 5 });
    await source.accept(await source.find(never));
    publish(server, filesOf('2'));
    const listener = new Listener();
    const wanted: boolean[] = [];
    listener.take = async ({ remoteVersion }, isWanted) => {
      if (remoteVersion !== '2') return;
      wanted.push(isWanted());
      publish(server, filesOf('3'));
      await source.accept(await source.refresh(never));
      wanted.push(isWanted());
    };
    listener.watch(t, source);
    await listener.until(({ models }) => wanted.length === 2 && models.length === 1);
    // Two looks later, the source has been told that the model was not taken.
    const requests = server.requests.length;
    await until(() => server.requests.length >= requests + 2);
    assert.deepEqual(wanted, [true, false]);
    server.stop();
    assert.equal(configOf(await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never)).version, '3');
  });
});
