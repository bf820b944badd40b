import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, promises, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ModelCache } from '../../src/model/cache.ts';
import { manifestText } from '../../src/model/manifest.ts';
import type { FoundModel } from '../../src/model/source.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { tarOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';
import {
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

/** Puts a model of 1,000 bytes into the cache. */
async function keepModel(cache: ModelCache, sha256: string): Promise<void> {
  const workspace = await cache.workspace();
  const model = join(workspace.folder, 'm');
  mkdirSync(model);
  writeFileSync(join(model, 'config.json'), 'x'.repeat(1000));
  await cache.keep(workspace, model, { sha256, signal: never });
  await workspace.remove();
}

suite('the cache of models', () => {
  test('does not take for good what was changed, added or removed, and fetches it again', async (t) => {
    const spoilers: ((folder: string) => void)[] = [
      (model) => writeFileSync(join(model, 'model.onnx'), 'x'),
      (model) => writeFileSync(join(model, 'other.onnx'), 'x'),
      (model) => rmSync(join(model, 'model.onnx')),
      (model) => writeFileSync(join(model, '..', 'entry.json'), '{'),
      (model) => rmSync(join(model, '..', 'entry.json')),
    ];
    for (const spoil of spoilers) {
      const server = await serverWith(t);
      const folder = temporaryFolder(t);
      const url = `${server.url}/m.tar.gz`;
      const source = sourceOf(t, url, { folder });
      const model = await source.find(never);
      await source.accept(model);
      spoil(model.folder);
      const again = await sourceOf(t, url, { folder }).find(never);
      assert.deepEqual([again.folder, again.offline, again.fallback], [model.folder, false, false]);
      assert.deepEqual(readdirSync(again.folder).toSorted(), ['config.json', 'model.onnx']);
      assert.equal(readFileSync(join(again.folder, 'model.onnx'), 'utf8'), filesOf('1')['model.onnx']);
      assert.deepEqual(temporaries(folder), []);
    }
  });

  test('does not start with what was fetched and never answered', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never);
    server.stop();
    assert.ok(isEmbedded(await sourceOf(t, `${server.url}/m.tar.gz`, { folder }).find(never)));
  });

  test('keeps a model whose check was ended before it was whole, unused', async (t) => {
    const [folder, sha256] = [temporaryFolder(t), 'a'.repeat(64)];
    const cache = new ModelCache({ folder, maxBytes: 2 ** 30 });
    await keepModel(cache, sha256);
    await assert.rejects(
      cache.open(sha256, AbortSignal.abort(new Error('the server ends'))),
      /^Error: the server ends$/,
    );
    assert.equal((await cache.kept())[0]?.isInUse, false);
    const model = await cache.open(sha256, never);
    assert.equal(model?.sha256, sha256);
    await model?.release();
  });

  test('removes what was not used for longest, and no more than it must', async (t) => {
    const folder = temporaryFolder(t);
    const everything = new ModelCache({ folder, maxBytes: 2 ** 30 });
    // The models' names have another order than their times of use.
    const [early, late, latest] = ['b', 'c', 'a'].map((letter) => letter.repeat(64)) as [string, string, string];
    for (const [at, sha256] of [early, late, latest].entries()) {
      await keepModel(everything, sha256);
      utimesSync(join(folder, sha256), 1000 + at, 1000 + at);
    }
    const models = () => readdirSync(folder).filter((name) => name.length === 64);
    const room = (maxBytes: number) => new ModelCache({ folder, maxBytes });
    await room(3000).prune(new Set());
    assert.deepEqual(models(), [latest, early, late]);
    // Opening a model counts as use.
    await (await everything.open(early))?.release();
    await room(2999).prune(new Set());
    assert.deepEqual(models(), [latest, early]);
    await room(1000).prune(new Set());
    assert.deepEqual(models(), [early]);
  });

  test('leaves what is needed, and what a process begins to use while it is being removed', async (t) => {
    const folder = temporaryFolder(t);
    const cache = new ModelCache({ folder, maxBytes: 0 });
    const [needed, taken, other] = ['a', 'b', 'c'].map((letter) => letter.repeat(64)) as [string, string, string];
    for (const sha256 of [needed, taken, other]) await keepModel(cache, sha256);
    const { rename } = promises;
    t.mock.method(promises, 'rename', async (from: string, to: string) => {
      if (from === join(folder, taken)) writeFileSync(join(from, '.in-use-1'), '');
      return rename(from, to);
    });
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    await cache.prune(new Set([needed]));
    assert.deepEqual(readdirSync(folder).toSorted(), [needed, taken]);
    assert.ok(existsSync(join(folder, taken, 'm', 'config.json')));
  });

  test('removes what there is no room for, but not what is in use or the last good one', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const cache = new ModelCache({ folder, maxBytes: 1 });
    const url = `${server.url}/m.tar.gz`;
    const [user, source] = [sourceOf(t, url, { folder }), sourceOf(t, `${server.url}/m.zip`, { folder, cache })];
    const used = await user.find(never);
    await source.accept(await source.find(never));
    assert.ok(existsSync(used.folder));
    const kept: FoundModel[] = [];
    for (const version of ['2', '3']) {
      publish(server, filesOf(version));
      const model = await source.refresh(never);
      await source.accept(model);
      kept.push(model);
    }
    assert.deepEqual(
      kept.map((model) => existsSync(model.folder)),
      [false, true],
    );
    assert.ok(existsSync(used.folder));
    await user.reject(used);
    await source.accept(await source.refresh(never));
    assert.ok(!existsSync(used.folder));
    assert.deepEqual(temporaries(folder), []);
  });

  test('removes what a killed process has left, but not what a running one is filling', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    for (const [name, age] of [
      ['.fetch-old', 3600],
      ['.gone-old', 3600],
      ['.fetch-new', 0],
    ] as const) {
      mkdirSync(join(folder, name));
      const mark = join(folder, name, '.in-use-1');
      writeFileSync(mark, '');
      const time = Date.now() / 1000 - age;
      utimesSync(mark, time, time);
    }
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    await source.accept(await source.find(never));
    assert.deepEqual(temporaries(folder), ['.fetch-new']);
  });

  test('serves two processes that fetch the same at once', async (t) => {
    const server = await HostileServer.start(t);
    const bothAsk = new EventEmitter();
    const go = once(bothAsk, 'go');
    server.on('/m.tar.gz', (_, response) => {
      if (server.requests.length === 2) bothAsk.emit('go');
      void go.then(() => response.end(tarOf(filesOf('1'))));
    });
    const folder = temporaryFolder(t);
    const program = fileURLToPath(new URL('programs/fetch.js', import.meta.url));
    const args = [program, `${server.url}/m.tar.gz`, folder];
    const ended = await Promise.all([1, 2].map(() => runCommand(process.execPath, { args })));
    assert.deepEqual(
      ended.map(({ code, stderr }) => [code, stderr]),
      [
        [0, ''],
        [0, ''],
      ],
    );
    assert.deepEqual(temporaries(folder), []);
    const prove = () => assert.fail('it was tried');
    const model = await sourceOf(t, `${server.url}/m.tar.gz`, { folder, prove }).find(never);
    assert.deepEqual([configOf(model).version, model.fallback], ['1', false]);
  });

  test('serves five sources of one process that fetch the same at once', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const sources = Array.from({ length: 5 }, () => sourceOf(t, `${server.url}/m.tar.gz`, { folder }));
    const models = await Promise.all(sources.map((source) => source.find(never)));
    assert.deepEqual(
      models.filter((model) => model.fallback).flatMap(({ notes }) => notes),
      [],
    );
    assert.equal(new Set(models.map((model) => model.folder)).size, 1);
    assert.ok(models.every((model) => !model.fallback));
    await Promise.all(sources.map((source, index) => source.accept(models[index] as FoundModel)));
    assert.deepEqual(temporaries(folder), []);
  });

  test('that cannot be written leaves the embedded model, with the reason', async (t) => {
    const server = await serverWith(t);
    const file = join(temporaryFolder(t), 'file');
    writeFileSync(file, '');
    const model = await sourceOf(t, `${server.url}/m.tar.gz`, { folder: join(file, 'cache') }).find(never);
    assert.ok(isEmbedded(model));
    assert.match(model.notes[0] ?? '', /^models cannot be kept in .*; set SVC_DATA; the embedded model answers/);
  });

  test('has the manifest of a folder as svc model manifest writes it', async (t) => {
    const folder = temporaryFolder(t);
    for (const [name, text] of Object.entries(filesOf('7'))) writeFileSync(join(folder, name), text);
    assert.deepEqual(JSON.parse(await manifestText(folder)), JSON.parse(manifestOf(filesOf('7'))));
    assert.equal(await manifestText(folder), await manifestText(folder));
  });
});
