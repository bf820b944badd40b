import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { startEngine } from '../../src/model/load.ts';
import { loadConfig } from '../../src/settings/config.ts';
import { copyOfFixture, fixture } from '../addon/model-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { HostileServer } from './hostile-server.ts';

const configOf = (t: TestContext, model: string) =>
  loadConfig({ flags: { model, device: 'cpu' }, cwd: temporaryFolder(t), env: {} }).config;

suite('the start of a model', () => {
  test('loads it, with the source that newer ones come from', async (t) => {
    const { engine, model, source } = await startEngine(configOf(t, fixture('marker')), new AbortController().signal);
    t.after(() => engine.close());
    assert.deepEqual([engine.info().dir, model.folder, source.source], Array(3).fill(fixture('marker')));
  });

  test('that is not the wanted one and fails as well says so of both', async (t) => {
    const server = await HostileServer.start(t);
    const settings = { flags: { model: `${server.url}/none.zip`, runtime: '/there/is/none' }, env: {} };
    const { config } = loadConfig({ ...settings, cwd: temporaryFolder(t) });
    await assert.rejects(startEngine({ ...config, modelCache: temporaryFolder(t) }, new AbortController().signal), {
      name: 'Refusal',
      message: /^http:.+none\.zip: status 404; the embedded model answers until it can be had; .*\/there\/is\/none/,
    });
  });

  test('loads nothing once it is stopped', async (t) => {
    await assert.rejects(startEngine(configOf(t, fixture('marker')), AbortSignal.abort()), { name: 'AbortError' });
    // Loading this model would find that its graph is missing.
    const broken = copyOfFixture(t, 'marker');
    rmSync(join(broken, 'model.onnx'));
    await assert.rejects(startEngine(configOf(t, broken), AbortSignal.abort()), { name: 'AbortError' });
    await assert.rejects(startEngine(configOf(t, broken), new AbortController().signal), { name: 'Refusal' });
  });
});
