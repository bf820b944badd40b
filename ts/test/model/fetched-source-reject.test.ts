import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { sha256Of } from '../../src/files/sha256.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { HostileServer } from './hostile-server.ts';
import {
  configOf,
  filesOf,
  isEmbedded,
  Listener,
  manifestOf,
  never,
  publish,
  serverWith,
  sourceOf,
} from './source-under-test.ts';

suite('a source whose model cannot be taken', () => {
  test('offers what could not be taken again to somebody who asks', async (t) => {
    const server = await serverWith(t);
    let isWell = false;
    const prove = async () => {
      if (!isWell) throw new Error('no memory left');
    };
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { prove });
    assert.ok(isEmbedded(await source.find(never)));
    await assert.rejects(source.refresh(never), { name: 'Refusal', message: /no memory left$/ });
    isWell = true;
    assert.equal(configOf(await source.refresh(never)).version, '1');
  });

  test('gives the last good one for a newer that cannot be loaded, and the embedded one for the last good one', async (t) => {
    const [server, folder] = [await serverWith(t), temporaryFolder(t)];
    const before = sourceOf(t, `${server.url}/m.tar.gz`, { folder });
    const first = await before.find(never);
    await before.accept(first);
    publish(server, filesOf('2'));
    const newer = await before.refresh(never);
    await before.reject(newer);
    const lastGood = (await before.instead(newer, 'it has no graph')) ?? assert.fail();
    assert.deepEqual([lastGood.folder, lastGood.notes], [first.folder, ['it has no graph']]);
    // The first model already answers, so a failure to load it once more says nothing against it.
    await before.reject(first);
    assert.equal((await before.instead(newer, ''))?.folder, first.folder);
    const source = sourceOf(t, `${server.url}/m.tar.gz`, { folder, refreshMs: 5 });
    assert.equal((await source.find(never)).folder, first.folder);
    await source.reject(first);
    const last = (await source.instead(first, 'nor this')) ?? assert.fail();
    assert.ok(isEmbedded(last));
    assert.deepEqual(last.notes, ['nor this; the embedded model answers instead']);
    await source.reject(last);
    assert.equal(await source.instead(last, ''), undefined);
    publish(server, filesOf('1'));
    await source.accept(last);
    const listener = new Listener().watch(t, source);
    await listener.until(({ notes }) => notes.length > 0);
    assert.deepEqual(
      [listener.models, listener.notes],
      [[], [`${server.url}/m.tar.gz: what it offers could not be loaded`]],
    );
  });

  test('is not tried any more when its trial has ended the process twice, until somebody asks or it is another', async (t) => {
    const server = await serverWith(t);
    const folder = temporaryFolder(t);
    const url = `${server.url}/manifest.json`;
    const note = join(folder, 'sources', `${sha256Of(url)}.trial.json`);
    const gone = spawnSync(process.execPath, ['--version']).pid;
    const died = (changes: object) => {
      mkdirSync(join(folder, 'sources'), { recursive: true });
      const sha256 = sha256Of(manifestOf(filesOf('1')));
      writeFileSync(note, JSON.stringify({ sha256, deaths: 1, pid: gone, host: hostname(), ...changes }));
    };
    const find = async () => {
      let trials = 0;
      const prove = async () => {
        assert.ok(existsSync(note));
        trials += 1;
      };
      const source = sourceOf(t, url, { folder, prove });
      return { source, model: await source.find(never), trials: () => trials };
    };
    died({});
    for (let start = 0; start < 2; start += 1) {
      const { source, model, trials } = await find();
      assert.ok(isEmbedded(model));
      assert.match(model.notes[0] ?? '', /: its trial has ended the process \d times;/);
      assert.equal(trials(), 0);
      if (start === 1) assert.equal(configOf(await source.refresh(never)).version, '1');
    }
    assert.ok(!existsSync(note));
    // These notes do not forbid a trial: no death yet, a process that still runs, another host, or another model.
    for (const other of [{ deaths: 0 }, { pid: process.ppid }, { host: 'other' }, { sha256: 'ab'.repeat(32) }]) {
      died(other);
      const { model, trials } = await find();
      assert.deepEqual([isEmbedded(model), trials(), existsSync(note)], [false, 1, false]);
    }
  });

  test('says why when there is no embedded one either, and why that is not there', async (t) => {
    const server = await HostileServer.start(t);
    const embedded = () => {
      throw new Error('the embedded model is not installed');
    };
    const message =
      /none\.zip: status 404; the embedded model cannot answer instead: the embedded model is not installed$/;
    const source = sourceOf(t, `${server.url}/none.zip`, { embedded });
    await assert.rejects(source.find(never), { name: 'Refusal', message });
    publish(server, filesOf('1'));
    const broken = sourceOf(t, `${server.url}/m.zip`, { embedded });
    const model = await broken.find(never);
    await broken.reject(model);
    await assert.rejects(broken.instead(model, 'it has no graph'), {
      name: 'Refusal',
      message: 'it has no graph; the embedded model cannot answer instead: the embedded model is not installed',
    });
  });
});
