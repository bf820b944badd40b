import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { answersText, copyOfFixture, fixture } from '../addon/model-folders.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { tarOf } from '../model/archives.ts';
import { HostileServer } from '../model/hostile-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { LiveServer } from './live-server.ts';

/** Returns a server in a folder of its own, and functions that change its settings and ask it. */
async function startWithSettings(t: TestContext, model: string) {
  const cwd = temporaryFolder(t);
  const set = (text: string) => writeFileSync(join(cwd, 'svc.json'), text);
  const setModel = (folder: string) => set(JSON.stringify({ model: folder, allow_no_password: true }));
  setModel(model);
  const server = await LiveServer.start(t, { cwd });
  const health = async () => JSON.parse((await server.get('/health')).text);
  const answer = async () => answersText(await server.answer(THREE_TYPES));
  const reload = () => server.send({ method: 'POST', path: '/reload' });
  return { server, set, setModel, health, answer, reload };
}

suite('a reload', () => {
  test('takes the model that the settings name now, and tells which it replaced', async (t) => {
    const { setModel, health, answer, reload } = await startWithSettings(t, fixture('marker'));
    const [before, first] = [await health(), await answer()];
    setModel(fixture('shared-state'));
    const { status, text } = await reload();
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(text), await health());
    const { source, dir, loaded_at, previous } = await health();
    const { model, version, sha256 } = before;
    assert.deepEqual([source, dir], [fixture('shared-state'), fixture('shared-state')]);
    assert.deepEqual(previous, { model, version, sha256, loaded_at: before.loaded_at });
    assert.ok(loaded_at > before.loaded_at);
    assert.notEqual(await answer(), first);
  });

  test('takes a folder that has changed', async (t) => {
    const folder = copyOfFixture(t, 'marker');
    const { answer, reload, health } = await startWithSettings(t, folder);
    const first = await answer();
    rmSync(folder, { recursive: true });
    cpSync(fixture('shared-state'), folder, { recursive: true });
    assert.equal(await answer(), first);
    assert.equal((await reload()).status, 200);
    assert.notEqual(await answer(), first);
    assert.notEqual((await health()).sha256, (await health()).previous.sha256);
  });

  for (const [what, spoil] of [
    ['a folder that is missing', { model: '/there/is/none' }],
    ['a model that is broken', undefined],
    ['settings that are wrong', { threads: 'many' }],
  ] as const) {
    test(`of ${what} changes nothing, and is in /health and the log until one succeeds`, async (t) => {
      const broken = copyOfFixture(t, 'shared-state');
      rmSync(join(broken, 'tokenizer.json'));
      const { server, set, setModel, health, answer, reload } = await startWithSettings(t, fixture('marker'));
      const [before, first] = [await health(), await answer()];
      set(JSON.stringify({ model: broken, ...spoil, allow_no_password: true }));
      const { status, text } = await reload();
      const code = spoil && 'threads' in spoil ? 'load_failed' : 'bad_model';
      assert.deepEqual([status, text], [500, `the model was not replaced (${code}); the log has the reason`]);
      const { failed_reload, ...rest } = await health();
      assert.deepEqual([rest, failed_reload.code], [before, code]);
      assert.equal(await answer(), first);
      await server.process.logged(/"msg":"the model was not replaced/);
      setModel(fixture('marker'));
      assert.equal((await reload()).status, 200);
      assert.equal((await health()).failed_reload, undefined);
    });
  }

  test('of a folder that does not give its own reference answers changes nothing; a start takes it', async (t) => {
    const wrong = copyOfFixture(t, 'shared-state');
    cpSync(join(fixture('marker'), 'golden.jsonl'), join(wrong, 'golden.jsonl'));
    const { server, setModel, health, answer, reload } = await startWithSettings(t, fixture('marker'));
    const [before, first] = [await health(), await answer()];
    setModel(wrong);
    assert.equal((await reload()).status, 500);
    const { failed_reload, ...rest } = await health();
    assert.deepEqual([rest, failed_reload.code, await answer()], [before, 'load_failed', first]);
    await server.process.logged(/"msg":"the model was not replaced: [^"]+golden\.jsonl: line \d+: /);
    const started = await LiveServer.start(t, { model: wrong });
    assert.equal((await started.get('/health')).status, 200);
  });

  // Windows has no SIGHUP.
  if (process.platform !== 'win32') {
    test('is what SIGHUP asks for', async (t) => {
      const { server, setModel, health } = await startWithSettings(t, fixture('marker'));
      setModel(fixture('shared-state'));
      server.process.signal('SIGHUP');
      await server.process.logged(/"msg":"model .+ loaded"[\s\S]+"msg":"model .+ loaded"/);
      assert.equal((await health()).source, fixture('shared-state'));
    });

    test('that SIGHUP asks for while the first model is loading follows it, once', async (t) => {
      const source = await HostileServer.start(t);
      let send = () => {};
      source.on('/m.tar.gz', (_, response) => {
        send = () => response.end(archive);
      });
      const files = readdirSync(fixture('marker')).map((name) => [name, readFileSync(join(fixture('marker'), name))]);
      const archive = tarOf(Object.fromEntries(files));
      const settings = { model: `${source.url}/m.tar.gz`, allow_no_password: true };
      const env = { SVC_DATA: temporaryFolder(t) };
      const server = await LiveServer.start(t, { settings, env, isLoading: true });
      const health = async () => JSON.parse((await server.get('/health')).text);
      const reloadIs = (state: string | undefined) => until(async () => (await health()).reload === state);
      server.process.signal('SIGHUP');
      await reloadIs('queued');
      server.process.signal('SIGHUP');
      await server.process.logged(/SIGHUP[\s\S]+SIGHUP/);
      const { status, model } = await health();
      assert.deepEqual([status, model], ['loading', null]);
      source.serve('/m.tar.gz', archive);
      send();
      await server.process.logged(/"msg":"model .+ loaded"[\s\S]+"msg":"model .+ loaded"/);
      await reloadIs(undefined);
      const after = await health();
      // Loading the same model again replaces no model.
      assert.deepEqual([after.status, after.model !== null, after.previous], ['ok', true, undefined]);
      // The start asks the source once and the one reload once more; the second signal causes no further request.
      assert.equal(source.requests.length, 2);
    });

    test('does not keep a server from its orderly end', async (t) => {
      const { server } = await startWithSettings(t, fixture('marker'));
      for (let count = 0; count < 5; count++) server.process.signal('SIGHUP');
      server.process.signal('SIGTERM');
      const { code, stderr } = await server.process.finished;
      assert.equal(code, 0);
      assert.doesNotMatch(stderr, /"level":[56]0/);
    });
  }
});
