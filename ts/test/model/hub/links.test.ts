import assert from 'node:assert/strict';
import { lstatSync, readFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { filesIn } from '../../../src/model/file-digest.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { hubSource, never, repositoryOf } from './hub-source.ts';
import { StandInHub } from './stand-in-hub.ts';

const GRAPH = repositoryOf('1')['model.onnx'];

/** Lets every call of a function of the file system fail until the test ends. */
function failing(t: TestContext, name: 'link' | 'symlink', code: string): void {
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
      message: /^hf:org\/name: files of a hub cannot be kept in .*file \((ENOTDIR|EEXIST)\); set HF_HOME$/,
    });
  });
});
