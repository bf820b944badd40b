import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sha256Of } from '../../src/files/sha256.ts';
import { ModelCache } from '../../src/model/cache.ts';
import { filesIn } from '../../src/model/file-digest.ts';
import { manifestText } from '../../src/model/manifest.ts';
import { copyOfFixture, type Fixture, fixture } from '../addon/model-folders.ts';
import { manyQuestions } from '../addon/requests.ts';
import { LiveServer } from '../real/live-server.ts';
import { runSvc } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { tarOf } from './archives.ts';
import { HostileServer } from './hostile-server.ts';
import { assertAnswers, health, reload } from './live-model.ts';

/** Offers a folder as a manifest with its files, and as an archive. */
async function offer(server: HostileServer, folder: string): Promise<{ archive: Buffer; manifest: string }> {
  const files = (await filesIn(folder)).map(({ path }) => [path, readFileSync(join(folder, path))] as const);
  const archive = tarOf(Object.fromEntries(files));
  const manifest = await manifestText(folder);
  for (const [path, bytes] of files) server.serve(`/${path}`, bytes);
  server.serve('/manifest.json', manifest);
  server.serve('/m.tar.gz', archive);
  return { archive, manifest };
}

interface World {
  readonly server: HostileServer;
  readonly data: string;
  start(path?: string, settings?: object): Promise<LiveServer>;
}

async function world(t: TestContext, name?: Fixture): Promise<World> {
  const server = await HostileServer.start(t);
  if (name !== undefined) await offer(server, fixture(name));
  const started: LiveServer[] = [];
  // This runs before the removal of the folder that the servers write to.
  t.after(() => Promise.all(started.map(end)));
  const data = temporaryFolder(t);
  const start = async (path = '/manifest.json', settings = {}) => {
    const live = await LiveServer.start(t, {
      settings: { model: server.url + path, allow_no_password: true, ...settings },
      env: { SVC_DATA: data },
    });
    started.push(live);
    return live;
  };
  return { server, data, start };
}

async function end(live: LiveServer): Promise<void> {
  live.process.signal('SIGKILL');
  await live.process.finished;
}

/** Waits until `isRight` holds for the record of `/health`, and returns the record. */
async function healthUntil(live: LiveServer, isRight: (record: Record<string, unknown>) => boolean) {
  let record: Record<string, unknown> = {};
  await until(async () => {
    record = await health(live);
    return isRight(record);
  });
  return record;
}

suite('a server whose model comes from elsewhere', { concurrency: 2 }, () => {
  for (const path of ['/manifest.json', '/m.tar.gz']) {
    test(`answers with it and says where it came from: ${path}`, async (t) => {
      const { server, data, start } = await world(t, 'shared-state');
      const live = await start(path);
      const { source, fallback, dir, remote_version, version, offline } = await health(live);
      assert.deepEqual([source, fallback, offline], [server.url + path, false, undefined]);
      assert.equal(remote_version, version);
      assert.ok(dir.startsWith(join(data, 'models')), dir);
      await assertAnswers(live, 'shared-state');
    });
  }

  test('unpacks an archive of this machine, and refuses to start without it', async (t) => {
    const archive = join(temporaryFolder(t), 'mine.tar.gz');
    const { server, data } = await world(t);
    writeFileSync(archive, (await offer(server, fixture('marker'))).archive);
    const live = await LiveServer.start(t, { model: archive, env: { SVC_DATA: data } });
    await assertAnswers(live, 'marker');
    assert.equal((await health(live)).source, archive);
    const options = { cwd: temporaryFolder(t), env: { SVC_DATA: data } };
    const { code, stderr } = await runSvc(
      t,
      ['serve', '--listen', '127.0.0.1:0', '--model', `${archive}.zip`],
      options,
    );
    assert.equal(code, 1);
    assert.match(stderr, /mine\.tar\.gz\.zip: no such file\n$/);
  });

  test('takes the newer one at a reload, and tells the one before', async (t) => {
    const { server, start } = await world(t, 'marker');
    const live = await start();
    const before = await health(live);
    await offer(server, fixture('shared-state'));
    assert.equal((await reload(live)).status, 200);
    const { sha256, previous, offline, fallback } = await health(live);
    assert.notEqual(sha256, before.sha256);
    assert.deepEqual([previous.sha256, offline, fallback], [before.sha256, undefined, false]);
    await assertAnswers(live, 'shared-state');
  });

  test('keeps its model when what is offered does not give its own reference answers', async (t) => {
    const { server, data, start } = await world(t, 'marker');
    const live = await start();
    const wrong = copyOfFixture(t, 'shared-state');
    writeFileSync(join(wrong, 'golden.jsonl'), readFileSync(join(fixture('marker'), 'golden.jsonl')));
    await offer(server, wrong);
    assert.equal((await reload(live)).status, 500);
    const { failed_reload, previous } = await health(live);
    assert.ok(failed_reload);
    assert.equal(previous, undefined);
    await assertAnswers(live, 'marker');
    await end(live);
    server.stop();
    const next = await LiveServer.start(t, { model: `${server.url}/manifest.json`, env: { SVC_DATA: data } });
    await assertAnswers(next, 'marker');
  });

  test('starts with the last good one at once when its source is away, and says so', async (t) => {
    const { server, start } = await world(t, 'shared-state');
    const first = await start();
    const { dir } = await health(first);
    await end(first);
    server.on('/manifest.json', () => {});
    const live = await start();
    const record = await health(live);
    assert.deepEqual([record.dir, record.offline, record.fallback, record.status], [dir, true, false, 'ok']);
    await assertAnswers(live, 'shared-state');
  });

  test('answers with the embedded one when there is no other, and takes the wanted one when its source is back', async (t) => {
    const { server, start } = await world(t);
    const live = await start();
    const record = await health(live);
    assert.deepEqual(
      [record.source, record.fallback, record.offline, record.model],
      ['embedded', true, true, 'svc-small'],
    );
    await live.process.logged(/manifest\.json: status 404; the embedded model answers until it can be had/);
    await offer(server, fixture('shared-state'));
    const { fallback, previous, source, offline } = await healthUntil(
      live,
      ({ fallback, offline }) => fallback === false && !offline,
    );
    assert.deepEqual([fallback, source, offline], [false, `${server.url}/manifest.json`, undefined]);
    assert.equal((previous as { model: string }).model, 'svc-small');
    await assertAnswers(live, 'shared-state');
  });

  test('answers a reload during a slow one at once, does it after that, and does not wait for a source that is set no more', async (t) => {
    const { server, data } = await world(t, 'marker');
    const cwd = temporaryFolder(t);
    const set = (model: string) =>
      writeFileSync(join(cwd, 'svc.json'), JSON.stringify({ model, allow_no_password: true }));
    set(`${server.url}/manifest.json`);
    const live = await LiveServer.start(t, { cwd, env: { SVC_DATA: data } });
    let isAsked = false;
    server.on('/slow.json', () => {
      isAsked = true;
    });
    set(`${server.url}/slow.json`);
    const slow = reload(live);
    await until(() => isAsked);
    const again = await reload(live);
    assert.deepEqual([again.status, JSON.parse(again.text).reload], [202, 'queued']);
    assert.equal((await health(live)).reload, 'queued');
    set(fixture('shared-state'));
    assert.equal((await reload(live)).status, 202);
    assert.equal((await slow).status, 500);
    const { dir, failed_reload } = await healthUntil(live, ({ reload }) => reload === undefined);
    assert.deepEqual([dir, failed_reload], [fixture('shared-state'), undefined]);
    await live.process.logged(
      /the model was not replaced: http:.+\/slow\.json: is not what the settings name any more/,
    );
    await assertAnswers(live, 'shared-state');
    await end(live);
  });

  test('that is killed in the middle of a fetch has nothing at the next start, and fetches it then', async (t) => {
    const { server, data, start } = await world(t, 'shared-state');
    const onModel = new Promise<void>((resolve) => {
      server.on('/model.onnx', (_, response) => {
        response.write('half of it');
        resolve();
      });
    });
    const settings = { model: `${server.url}/manifest.json`, allow_no_password: true };
    const killed = await LiveServer.start(t, { settings, env: { SVC_DATA: data }, isLoading: true });
    await onModel;
    assert.equal((await health(killed)).status, 'loading');
    await end(killed);
    assert.deepEqual(
      readdirSync(join(data, 'models')).filter((name) => !name.startsWith('.fetch-')),
      [],
    );
    await offer(server, fixture('shared-state'));
    await assertAnswers(await start(), 'shared-state');
  });

  test('that is killed in the middle of a swap starts with the model before, and after it with the new one', async (t) => {
    const { server, data, start } = await world(t, 'marker');
    const slow = copyOfFixture(t, 'shared-state');
    const questions = JSON.stringify({ body: manyQuestions(1000), probabilities: {} });
    writeFileSync(join(slow, 'golden.jsonl'), `${questions}\n`.repeat(32));
    const cache = new ModelCache({ folder: join(data, 'models'), maxBytes: 0 });
    const good = async () => (await cache.lastGood(`${server.url}/manifest.json`))?.sha256;
    const isWhole = (sha256: string) => existsSync(join(data, 'models', sha256, 'entry.json'));

    const live = await start();
    const { manifest: before } = await offer(server, fixture('marker'));
    const { manifest: next } = await offer(server, slow);
    reload(live).catch(() => {});
    await until(() => isWhole(sha256Of(next)));
    // By then the trial of the new model is running, and it takes many times as long.
    await delay(300);
    await end(live);
    assert.deepEqual([isWhole(sha256Of(next)), await good()], [true, sha256Of(before)]);
    server.on('/manifest.json', (_, response) => response.writeHead(500).end());
    const second = await start();
    const { fallback, offline } = await health(second);
    assert.deepEqual([fallback, offline], [false, true]);
    await assertAnswers(second, 'marker');

    const { manifest: last } = await offer(server, fixture('shared-state'));
    reload(second).catch(() => {});
    await until(async () => (await good()) === sha256Of(last));
    await end(second);
    server.stop();
    const settings = { model: `${server.url}/manifest.json`, allow_no_password: true };
    const third = await LiveServer.start(t, { settings, env: { SVC_DATA: data } });
    await assertAnswers(third, 'shared-state');
    await end(third);
  });

  test('ends in order in the middle of a fetch', async (t) => {
    const { server, data } = await world(t, 'shared-state');
    const onModel = new Promise<void>((resolve) => {
      server.on('/model.onnx', () => resolve());
    });
    const settings = { model: `${server.url}/manifest.json`, allow_no_password: true };
    const live = await LiveServer.start(t, { settings, env: { SVC_DATA: data }, isLoading: true });
    await onModel;
    live.process.signal('SIGTERM');
    assert.equal((await live.process.finished).code, 0);
  });

  test('takes no other than the pinned one, whatever is offered', async (t) => {
    const { server, data, start } = await world(t, 'shared-state');
    const pinned = sha256Of(await manifestText(fixture('shared-state')));
    const first = await start('/manifest.json', { model_sha256: pinned });
    await assertAnswers(first, 'shared-state');
    await offer(server, fixture('marker'));
    assert.equal((await reload(first)).status, 500);
    await end(first);
    const second = await start('/manifest.json', { model_sha256: pinned });
    assert.equal((await health(second)).fallback, false);
    await assertAnswers(second, 'shared-state');
    const third = await start('/manifest.json', { model_sha256: 'AB'.repeat(32) });
    assert.equal((await health(third)).fallback, true);
    const folder = ['serve', '--listen', '127.0.0.1:0', '--model', fixture('marker')];
    const { code, stderr } = await runSvc(t, folder, {
      cwd: temporaryFolder(t),
      env: { SVC_DATA: data, SVC_MODEL_SHA256: pinned },
    });
    assert.equal(code, 1);
    assert.match(stderr, /marker: its manifest has the sha256 [0-9a-f]{64}, not that of model_sha256\n$/);
  });

  test('removes the oldest beyond its cache, never the one in use', async (t) => {
    const { server, data, start } = await world(t, 'marker');
    const live = await start('/manifest.json', { model_cache_bytes: 1 });
    const folders = () => readdirSync(join(data, 'models')).filter((name) => /^[0-9a-f]{64}$/.test(name));
    for (let n = 0; n < 3; n += 1) {
      const changed = copyOfFixture(t, 'marker');
      appendFileSync(join(changed, 'config.json'), ' '.repeat(n + 1));
      await offer(server, changed);
      assert.equal((await reload(live)).status, 200);
      const { dir } = await health(live);
      assert.deepEqual(folders(), [dir.split(/[\\/]/).at(-2)]);
      assert.ok(statSync(dir).isDirectory());
    }
  });
});

suite('commands', () => {
  test('svc model check looks at a model where it comes from, its reference answers too', async (t) => {
    const { server, data } = await world(t, 'shared-state');
    const args = ['model', 'check', `${server.url}/m.tar.gz`, '--device', 'cpu'];
    const { code, stdout, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t), env: { SVC_DATA: data } });
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^checked {2}32 reference answers$/m);
    const missing = ['model', 'check', `${server.url}/none.zip`, '--device', 'cpu'];
    const failed = await runSvc(t, missing, { cwd: temporaryFolder(t), env: { SVC_DATA: data } });
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /none\.zip: status 404\n$/);
  });

  test('svc model manifest prints what a source offers, and its sha256', async (t) => {
    const { code, stdout, stderr } = await runSvc(t, ['model', 'manifest', fixture('marker')], {
      cwd: temporaryFolder(t),
    });
    assert.deepEqual(
      [code, stdout, stderr],
      [0, await manifestText(fixture('marker')), `sha256 ${sha256Of(stdout)}\n`],
    );
    const none = await runSvc(t, ['model', 'manifest', temporaryFolder(t)], { cwd: temporaryFolder(t) });
    assert.equal(none.code, 1);
    assert.match(none.stderr, /config\.json: no such file\n$/);
  });
});
