import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { lstatSync, readFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { sha256Of } from '../../../src/files/sha256.ts';
import { filesIn } from '../../../src/model/file-digest.ts';
import { CachedRepository } from '../../../src/model/hub/hub-cache.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { hubSource, never, repositoryOf } from './hub-source.ts';
import { StandInHub } from './stand-in-hub.ts';

const GRAPH = repositoryOf('1')['model.onnx'];

/** Lets every call of a function of the file system fail until the test ends. */
function failing(t: TestContext, name: 'link' | 'symlink' | 'writeFile' | 'copyFile', code: string): void {
  t.mock.method(promises, name, async () => {
    throw Object.assign(new Error(`${code}: not here`), { code });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

async function hubWithModel(t: TestContext) {
  const hub = await StandInHub.start(t);
  const commit = hub.publish('org/name', repositoryOf('1'));
  const cache = temporaryFolder(t);
  return { hub, cache, snapshot: join(cache, 'models--org--name', 'snapshots', commit) };
}

suite('a model from a hub', () => {
  test('is copied where the two caches are on different disks', async (t) => {
    const { hub, cache, snapshot } = await hubWithModel(t);
    failing(t, 'link', 'EXDEV');
    const { folder } = await hubSource(t, hub, { cache }).find(never);
    assert.equal(readFileSync(join(folder, 'model.onnx'), 'utf8'), GRAPH);
    assert.equal(lstatSync(join(folder, 'model.onnx')).nlink, 1);
    assert.ok(lstatSync(join(snapshot, 'model.onnx')).isSymbolicLink());
  });

  test('lies in the snapshot itself where there are no links, and is found there', async (t) => {
    const { hub, cache, snapshot } = await hubWithModel(t);
    failing(t, 'symlink', 'EPERM');
    await hubSource(t, hub, { cache }).find(never);
    assert.ok(lstatSync(join(snapshot, 'model.onnx')).isFile());
    assert.deepEqual(await filesIn(join(cache, 'models--org--name', 'blobs')), []);
    hub.requests.length = 0;
    const { folder } = await hubSource(t, hub, { cache }).find(never);
    assert.equal(readFileSync(join(folder, 'model.onnx'), 'utf8'), GRAPH);
    assert.deepEqual(hub.resolved, []);
  });

  test('is not taken where a cache cannot be written, and that is said', async (t) => {
    const { hub } = await hubWithModel(t);
    // A file stands where the cache would be.
    const cache = join(temporaryFolder(t), 'file');
    await promises.writeFile(cache, '');
    await assert.rejects(hubSource(t, hub, { cache }).refresh(never), {
      name: 'Refusal',
      message:
        /^hf:org\/name: files of a hub cannot be kept in .*file \((ENOTDIR|EEXIST): a file stands in its place\); set HF_HOME$/,
    });
  });

  for (const [code, words] of [
    ['ENOSPC', ': the disk is full'],
    ['EROFS', ': the disk is read-only'],
    ['EACCES', ''],
  ] as const) {
    test(`says in one line which cache takes no file, and why: ${code}`, async (t) => {
      const { hub, cache } = await hubWithModel(t);
      const folder = temporaryFolder(t);
      failing(t, 'writeFile', code);
      const ofHub = `hf:org/name: files of a hub cannot be kept in ${cache} (${code}${words}); set HF_HOME`;
      await assert.rejects(hubSource(t, hub, { cache, folder }).refresh(never), { name: 'Refusal', message: ofHub });
      t.mock.restoreAll();
      failing(t, 'link', 'EXDEV');
      failing(t, 'copyFile', code);
      const ofModels = `models cannot be kept in ${folder} (${code}${words}); set SVC_DATA`;
      await assert.rejects(hubSource(t, hub, { cache, folder }).refresh(never), { name: 'Refusal', message: ofModels });
    });
  }
});

suite('the removal of a model from the cache of a hub', () => {
  test('leaves transfers that run, and contents that have no name yet', async (t) => {
    const { hub, cache } = await hubWithModel(t);
    await hubSource(t, hub, { cache }).find(never);
    const repository = new CachedRepository(cache, 'org/name');
    const commit = (await repository.commitOf('main')) ?? '';
    const paths = (await repository.filesAt(commit)).map(({ path }) => path);
    const [blob, other, old] = ['ab', 'cd', 'ef'].map((byte) => byte.repeat(32));
    const machine = sha256Of(hostname()).slice(0, 8);
    const gone = spawnSync(process.execPath, ['--version']).pid;
    const [running, ended] = [process.ppid, gone].map((pid) => `${blob}.svc-${machine}-${pid}-ab.incomplete`);
    const names = [running, ended, other, old, `${blob}.0a1b2c3d.incomplete`];
    for (const name of names) await promises.writeFile(join(repository.blobs, String(name)), 'x');
    const hourAgo = new Date(Date.now() - 3_600_000);
    await promises.utimes(join(repository.blobs, String(old)), hourAgo, hourAgo);
    await repository.remove(commit, paths);
    const left = await filesIn(repository.folder);
    assert.deepEqual(
      left.map(({ path }) => path),
      [`${blob}.0a1b2c3d.incomplete`, running, other].map((name) => `blobs/${name}`),
    );
  });
});
