import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { sha256Of } from '../../src/files/sha256.ts';
import { ModelCache } from '../../src/model/cache.ts';
import type { FetchedSource } from '../../src/model/fetched-source.ts';
import { FileStore } from '../../src/model/file-store.ts';
import { SourceError } from '../../src/model/source-error.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { tarOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';
import {
  type Changes,
  configOf,
  filesOf,
  isEmbedded,
  manifestOf,
  never,
  publish,
  serverWith,
  sourceOf,
  temporaries,
} from './source-under-test.ts';

suite('a model from a web server', () => {
  for (const path of ['/m.tar.gz', '/m.zip', '/manifest.json']) {
    test(`is fetched, whole, and found again without asking: ${path}`, async (t) => {
      const server = await serverWith(t);
      const folder = temporaryFolder(t);
      const source = sourceOf(t, server.url + path, { folder });
      const model = await source.find(never);
      for (const [name, text] of Object.entries(filesOf('1')))
        assert.equal(readFileSync(join(model.folder, name), 'utf8'), text);
      assert.deepEqual(
        [model.source, model.fallback, model.offline, model.remoteVersion],
        [server.url + path, false, false, '1'],
      );
      assert.deepEqual(temporaries(folder), []);
      await source.accept(model);
      server.stop();
      const again = await sourceOf(t, server.url + path, { folder }).find(never);
      assert.deepEqual(
        [again.folder, again.sha256, again.offline, again.fallback],
        [model.folder, model.sha256, true, false],
      );
    });
  }

  test('has the sha256 of the archive or of the manifest, and the name of the folder in the archive', async (t) => {
    const server = await serverWith(t);
    const model = await sourceOf(t, `${server.url}/m.tar.gz`).find(never);
    const files = Object.entries(filesOf('1')).map(([name, text]) => [`m/${name}`, text]);
    assert.equal(model.sha256, sha256Of(tarOf(Object.fromEntries(files))));
    assert.equal(basename(model.folder), 'm');
    const listed = await sourceOf(t, `${server.url}/manifest.json`).find(never);
    assert.equal(listed.sha256, sha256Of(manifestOf(filesOf('1'))));
  });

  test('is only taken with the sha256 that is pinned, and then without asking again', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const pinned = sha256Of(manifestOf(filesOf('1')));
    const url = `${server.url}/manifest.json`;
    const source = sourceOf(t, url, { folder, pinned });
    await source.accept(await source.find(never));
    publish(server, filesOf('2'));
    server.requests.length = 0;
    const again = sourceOf(t, url, { folder, pinned });
    const model = await again.find(never);
    assert.deepEqual([configOf(model).version, model.offline, server.requests], ['1', false, []]);
    await assert.rejects(again.refresh(never), {
      name: 'Refusal',
      message: `${url}: has the sha256 ${sha256Of(manifestOf(filesOf('2')))}, not that of model_sha256`,
    });
    assert.ok(!server.requests.includes('/model.onnx'));
    const other = sourceOf(t, `${server.url}/m.tar.gz`, { folder, pinned });
    assert.ok(isEmbedded(await other.find(never)));
  });

  test('is not sent again while its tag is the same, and not unpacked again when only its tag has changed', async (t) => {
    const server = await serverWith(t);
    const source = sourceOf(t, `${server.url}/m.tar.gz`);
    const model = await source.find(never);
    await source.accept(model);
    const tags: (string | undefined)[] = [];
    server.on('/m.tar.gz', (request, response) => {
      tags.push(request.headers['if-none-match']);
      response.writeHead(304).end();
    });
    assert.equal((await source.refresh(never)).folder, model.folder);
    // The server makes the tag of an archive of its sha256.
    assert.deepEqual(tags, [`"${model.sha256}"`]);
    let sent = 0;
    server.on('/m.tar.gz', (_, response) => {
      sent += 1;
      const files = Object.entries(filesOf('1')).map(([name, text]) => [`m/${name}`, text]);
      response.setHeader('etag', `"${sent}"`).end(tarOf(Object.fromEntries(files)));
    });
    const { mtimeMs } = statSync(join(model.folder, 'config.json'));
    assert.equal((await source.refresh(never)).sha256, model.sha256);
    assert.equal(sent, 1);
    assert.equal(statSync(join(model.folder, 'config.json')).mtimeMs, mtimeMs);
  });

  test('keeps its password to the server that it was set for', async (t) => {
    const [server, other] = [await serverWith(t), await serverWith(t)];
    const seen: (string | undefined)[] = [];
    server.on('/m.tar.gz', (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: `${server.url}/again` }).end();
    });
    server.on('/again', (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: `http://localhost:${new URL(other.url).port}/m.tar.gz` }).end();
    });
    const url = server.url.replace('//', '//user:p%20w@');
    await assert.rejects(sourceOf(t, `${url}/m.tar.gz`).refresh(never), /not a public address/);
    const basic = `Basic ${Buffer.from('user:p w').toString('base64')}`;
    assert.deepEqual(seen, [basic, basic]);
    assert.deepEqual(other.requests, []);
  });
});

suite('an archive of this machine', () => {
  function archiveSource(t: TestContext, path: string, { folder, ...changes }: Changes): FetchedSource {
    return sourceOf(t, 'http://unused/m.tar.gz', {
      ...changes,
      ...(folder !== undefined && { folder }),
      store: new FileStore(path),
      source: path,
      identity: path,
      isLocal: true,
    });
  }

  test('is unpacked once, and again when it is another', async (t) => {
    const [folder, path] = [temporaryFolder(t), join(temporaryFolder(t), 'm.tar.gz')];
    writeFileSync(path, tarOf(filesOf('1')));
    const cache = new ModelCache({ folder, maxBytes: 2 ** 30 });
    // An archive is unpacked in a workspace, and moved from there.
    const { mock: unpacked } = t.mock.method(cache, 'workspace');
    const prove = t.mock.fn(async () => {});
    const work = () => [unpacked.callCount(), prove.mock.callCount()];
    const source = archiveSource(t, path, { cache, prove });
    const first = await source.find(never);
    await source.accept(first);
    assert.equal((await archiveSource(t, path, { cache, prove }).find(never)).folder, first.folder);
    assert.deepEqual(work(), [1, 1]);
    writeFileSync(path, tarOf(filesOf('2')));
    utimesSync(path, 1, 1);
    assert.equal(configOf(await archiveSource(t, path, { cache, prove }).find(never)).version, '2');
    assert.deepEqual(work(), [2, 2]);
  });

  test('that is missing or broken is an error, whatever was there before', async (t) => {
    const [folder, path] = [temporaryFolder(t), join(temporaryFolder(t), 'm.tar.gz')];
    await assert.rejects(archiveSource(t, path, { folder }).find(never), {
      name: 'Refusal',
      message: `${path}: no such file`,
    });
    writeFileSync(path, tarOf(filesOf('1')));
    const source = archiveSource(t, path, { folder });
    await source.accept(await source.find(never));
    writeFileSync(path, 'no archive');
    await assert.rejects(archiveSource(t, path, { folder }).find(never), {
      name: 'Refusal',
      message: /cannot be unpacked/,
    });
    // No file system allows a name of this length. A file mode would not do, because root may open every file.
    const unopened = join(folder, `${'x'.repeat(300)}.tar.gz`);
    await assert.rejects(archiveSource(t, unopened, { folder }).find(never), {
      message: /cannot be read \(ENAMETOOLONG\)$/,
    });
    mkdirSync(join(folder, 'd.tar.gz'));
    await assert.rejects(archiveSource(t, join(folder, 'd.tar.gz'), { folder }).find(never), {
      message: /is not a file$/,
    });
  });
});

suite('a source that is asked', () => {
  test('is neither sent nor tried again for another process that was told it is good', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const before = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    await before.accept(await before.find(never));
    const tags: (string | undefined)[] = [];
    server.on('/m.tar.gz', (request, response) => {
      tags.push(request.headers['if-none-match']);
      response.writeHead(304).end();
    });
    const prove = () => assert.fail('it was tried');
    const model = await sourceOf(t, `${server.url}/m.tar.gz`, { folder, prove }).refresh(never);
    assert.deepEqual([configOf(model).version, tags.length, typeof tags[0]], ['1', 1, 'string']);
  });

  test('ends with its signal while another look at the source is under way', async (t) => {
    let answer = () => {};
    const answered = new Promise<never>((_, reject) => {
      answer = () => reject(new SourceError('nobody is there', { isAway: true }));
    });
    const source = sourceOf(t, 'http://unused/m.tar.gz', { store: { open: () => answered } });
    const first = source.find(never);
    const stop = new AbortController();
    const second = source.refresh(stop.signal);
    stop.abort(new Error('the end'));
    await assert.rejects(second, { message: 'the end' });
    answer();
    assert.ok(isEmbedded(await first));
  });

  test('ends with its signal in the middle of a trial, which then says nothing against the model', async (t) => {
    const server = await serverWith(t);
    const stop = new AbortController();
    let trials = 0;
    const prove = (_: string, signal: AbortSignal) => {
      trials += 1;
      if (trials > 1) return Promise.resolve();
      stop.abort(new Error('the end'));
      return new Promise<void>((_, reject) => {
        if (signal.aborted) reject(new Error('ended'));
      });
    };
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { prove });
    await assert.rejects(source.find(stop.signal), { message: 'the end' });
    assert.equal(configOf(await source.find(never)).version, '1');
    assert.equal(trials, 2);
  });

  test('ends with its signal, in the middle of a transfer too, and leaves nothing', async (t) => {
    const server = await HostileServer.start(t);
    server.on('/m.tar.gz', (_, response) => void response.write('x'));
    const folder = temporaryFolder(t);
    const stop = new AbortController();
    const finding = sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(stop.signal);
    await until(() => temporaries(folder).length > 0);
    stop.abort(new Error('the end'));
    await assert.rejects(finding, { message: 'the end' });
    assert.deepEqual(temporaries(folder), []);
  });
});
