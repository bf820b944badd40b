import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { pino } from 'pino';
import { EngineError, type ModelInfo } from '../../src/engine/contract.ts';
import { Reloader } from '../../src/model/reload.ts';
import { EngineSlot } from '../../src/model/slot.ts';
import type { FoundModel, ModelSource, SourceListener, SourceStatus } from '../../src/model/source.ts';
import { healthRecord } from '../../src/server/health-record.ts';
import { FakeEngine } from '../fake-engine.ts';
import { until } from '../until.ts';

/** A source that offers the model that a test sets, and records the calls of its other methods. */
class FakeSource implements ModelSource {
  readonly source: string;
  readonly told: string[] = [];
  /** Returns the model that the source offers. A test may replace it. */
  offer: (signal: AbortSignal) => Promise<FoundModel> = async () => this.model('first');
  watched: { readonly listener: SourceListener; readonly signal: AbortSignal } | undefined;

  constructor(source: string) {
    this.source = source;
  }

  model(folder: string): FoundModel {
    return { folder, source: this.source, fallback: false, offline: false, notes: [] };
  }

  find(signal: AbortSignal): Promise<FoundModel> {
    return this.offer(signal);
  }

  refresh(signal: AbortSignal): Promise<FoundModel> {
    return this.offer(signal);
  }

  async accept({ folder }: FoundModel): Promise<void> {
    this.told.push(`accept ${folder}`);
  }

  async reject({ folder }: FoundModel): Promise<void> {
    this.told.push(`reject ${folder}`);
  }

  async instead(): Promise<undefined> {}

  /** The status that `report` returns. */
  status: SourceStatus = { offline: false };

  report(): SourceStatus {
    return this.status;
  }

  async close(): Promise<void> {
    this.told.push('close');
  }

  async watch(listener: SourceListener, signal: AbortSignal): Promise<void> {
    this.watched = { listener, signal };
  }
}

/** Returns a reloader whose first model answers. */
async function startReloader(info: Partial<ModelInfo> = {}, wantsAccelerator?: boolean) {
  const lines: { readonly level: number; readonly msg: string }[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const [engine, slot, source] = [
    new FakeEngine({ dir: 'first', ...info }),
    new EngineSlot(),
    new FakeSource('s3://a'),
  ];
  const settings = { source };
  const model = source.model('first');
  const loaded = Promise.resolve({ engine, source, model });
  const trial = { prove: async (_folder: string, _signal: AbortSignal) => {} };
  const prove = (folder: string, signal: AbortSignal) => trial.prove(folder, signal);
  const wants = wantsAccelerator === undefined ? {} : { wantsAccelerator };
  const reloader = new Reloader({ slot, loaded, open: async () => settings.source, prove, log, ...wants });
  await reloader.start();
  const health = () => healthRecord(slot, 'serving');
  const reload = () => reloader.reload().done;
  return { reloader, reload, engine, slot, source, settings, trial, lines, health };
}

suite('the reloader', () => {
  test('takes what the source offers, and tells it that it is good', async () => {
    const { reload, source, health } = await startReloader();
    source.offer = async () => ({ ...source.model('next'), remoteVersion: '7', notes: ['it was slow'] });
    await reload();
    assert.deepEqual([health().dir, health().remote_version, source.told], ['next', '7', ['accept next']]);
  });

  test('loads one model at a time, and a reload that waits is the same for all who ask meanwhile', async () => {
    const { reloader, reload, engine, source, health } = await startReloader();
    const folders = ['a', 'b', 'c'];
    source.offer = async () => source.model(folders.shift() ?? 'none');
    const running = { now: 0, most: 0 };
    const release: (() => void)[] = [];
    engine.next = async (dir) => {
      running.most = Math.max(running.most, ++running.now);
      await new Promise<void>((resolve) => release.push(resolve));
      running.now -= 1;
      return { dir };
    };
    const first = reload();
    await until(() => release.length === 1);
    assert.equal(health().reload, 'running');
    const asked = [reloader.reload(), reloader.reload()];
    assert.deepEqual([...asked.map(({ isQueued }) => isQueued), health().reload], [true, true, 'queued']);
    const later: Promise<unknown>[] = asked.map(({ done }) => done);
    assert.ok(source.watched);
    later.push(source.watched.listener.found(source.model('found'), () => true));
    for (let count = 1; count <= 3; count++) {
      await until(() => release.length === count);
      release[count - 1]?.();
    }
    await Promise.all([first, ...later]);
    assert.deepEqual([engine.swaps, running.most, health().reload], [['a', 'b', 'found'], 1, undefined]);
  });

  test('goes on with the model that is there when the next one cannot be taken, and with the next reload', async () => {
    const { reload, engine, source, health, lines } = await startReloader();
    const { next } = engine;
    engine.next = () => Promise.reject(new EngineError({ code: 'bad_model', message: 'broken: no graph' }));
    await assert.rejects(reload(), { code: 'bad_model' });
    assert.deepEqual([health().dir, health().failed_reload?.code], ['first', 'bad_model']);
    assert.deepEqual(source.told, ['reject first']);
    assert.equal(lines.at(-1)?.msg, 'the model was not replaced: broken: no graph');
    source.offer = () => Promise.reject(new Error('nobody answers'));
    await assert.rejects(reload(), { message: 'nobody answers' });
    assert.equal(health().failed_reload?.code, 'load_failed');
    [engine.next, source.offer] = [next, async () => source.model('good')];
    await reload();
    assert.deepEqual([health().dir, health().failed_reload], ['good', undefined]);
  });

  test('that cannot take a model tells at once what it has learned of the source', async () => {
    const { reload, source, settings, health } = await startReloader();
    source.offer = async () => {
      source.status = { offline: true };
      throw new Error('nobody answers');
    };
    await assert.rejects(reload());
    assert.deepEqual([health().offline, health().failed_reload?.code], [true, 'load_failed']);
    source.offer = async () => {
      source.status = { offline: false, remoteVersion: '2', isRefused: true };
      throw new Error('it is broken');
    };
    await assert.rejects(reload());
    const { offline, remote_version, failed_reload } = health();
    assert.deepEqual([offline, remote_version, failed_reload?.code], [undefined, '2', 'load_failed']);
    // A failed reload is cleared by the next reload, and not by what the source says.
    source.watched?.listener.status({ offline: false, remoteVersion: '2' });
    assert.ok(health().failed_reload);
    // A failure of another source says nothing about the source whose model answers.
    settings.source = new FakeSource('s3://b');
    settings.source.status = { offline: true, remoteVersion: '9' };
    settings.source.offer = () => Promise.reject(new Error('nobody answers'));
    await assert.rejects(reload());
    assert.deepEqual([health().offline, health().remote_version], [undefined, '2']);
  });

  test('takes a folder that has not changed for no other model', async () => {
    const { reload, health, engine } = await startReloader();
    await reload();
    assert.equal(health().previous, undefined);
    engine.next = async () => ({ dir: 'first', version: '9' });
    await reload();
    const { previous } = health();
    assert.equal(previous?.version, '1.2.3');
    await reload();
    assert.deepEqual(health().previous, previous);
  });

  test('says why an accelerator was passed over to who wants one, and to nobody else', async () => {
    const deviceNotes = ['cuda: there is none'];
    const notes = async (wantsAccelerator?: boolean) =>
      (await startReloader({ deviceNotes }, wantsAccelerator)).lines.map(({ msg }) => msg);
    assert.deepEqual(await notes(true), ['cuda: there is none', 'model fake loaded']);
    assert.deepEqual(await notes(), ['model fake loaded']);
  });

  test('takes what a watched source has found, and what it says of itself', async () => {
    const { source, health, lines } = await startReloader();
    const { listener } = source.watched ?? assert.fail();
    await listener.found(source.model('newer'), () => true);
    assert.equal(health().dir, 'newer');
    listener.status({ offline: true, remoteVersion: '8' });
    assert.deepEqual([health().offline, health().remote_version, health().dir], [true, '8', 'newer']);
    listener.status({ offline: false, remoteVersion: '9', isRefused: true });
    assert.deepEqual([health().failed_reload?.code, health().remote_version], ['load_failed', '9']);
    listener.status({ offline: false, remoteVersion: '8', isRefused: false });
    assert.equal(health().failed_reload, undefined);
    listener.note('no route to it');
    assert.deepEqual([lines.at(-1)?.level, lines.at(-1)?.msg], [40, 'no route to it']);
  });

  test('says that an offer cannot be taken until another one is made, and that a reload failed until one succeeds', async () => {
    const { reload, engine, source, health } = await startReloader();
    const { listener } = source.watched ?? assert.fail();
    const { next } = engine;
    engine.next = () => Promise.reject(new EngineError({ code: 'bad_model', message: 'broken' }));
    await assert.rejects(listener.found(source.model('broken'), () => true));
    listener.status({ offline: false, isRefused: true });
    assert.equal(health().failed_reload?.code, 'bad_model');
    listener.status({ offline: false });
    assert.equal(health().failed_reload, undefined);
    await assert.rejects(reload());
    listener.status({ offline: false });
    assert.equal(health().failed_reload?.code, 'bad_model');
    engine.next = next;
    await reload();
    assert.equal(health().failed_reload, undefined);
  });

  test('warns in one line when the processor has taken the place of an accelerator, and /health says so until one is back', async () => {
    const { reload, engine, health, lines } = await startReloader({ device: 'cuda' });
    const takes = (device: string, ...deviceNotes: string[]) => {
      engine.next = async (dir) => ({ dir, device, deviceNotes });
      return reload();
    };
    const warnings = () => lines.filter(({ level }) => level === 40).map(({ msg }) => msg);
    await takes('cuda');
    assert.deepEqual([health().lost_device, warnings()], [undefined, []]);
    await takes('cpu', 'cuda: out of memory');
    const warning = 'the model runs on cpu and no longer on cuda: cuda: out of memory';
    assert.deepEqual([health().device, health().lost_device, warnings()], ['cpu', 'cuda', [warning]]);
    await takes('cpu', 'cuda: out of memory');
    assert.deepEqual([health().lost_device, warnings()], ['cuda', [warning]]);
    await takes('cuda');
    assert.equal(health().lost_device, undefined);
  });

  test('watches another source once its model answers, and no longer the one before', async () => {
    const { reload, engine, source, settings, health } = await startReloader();
    const before = source.watched ?? assert.fail();
    settings.source = new FakeSource('s3://b');
    settings.source.offer = () => Promise.reject(new Error('nobody answers'));
    await assert.rejects(reload());
    assert.deepEqual([before.signal.aborted, settings.source.watched], [false, undefined]);
    settings.source.offer = async () => settings.source.model('other');
    await reload();
    assert.equal(health().source, 's3://b');
    assert.deepEqual([before.signal.aborted, settings.source.watched?.signal.aborted], [true, false]);
    assert.equal(await before.listener.found(source.model('too late'), () => true), false);
    assert.deepEqual(engine.swaps, ['other']);
    assert.deepEqual([source.told, settings.source.told], [['close'], ['close', 'accept other']]);
  });

  test('does not load once more what a reload has taken while the source was looking', async () => {
    const { reload, engine, source } = await startReloader();
    const { listener } = source.watched ?? assert.fail();
    const model = { ...source.model('next'), sha256: 'b' };
    source.offer = async () => model;
    await reload();
    assert.equal(await listener.found(model, () => true), true);
    assert.deepEqual(engine.swaps, ['next']);
    await listener.found({ ...model, sha256: 'c' }, () => true);
    assert.deepEqual(engine.swaps, ['next', 'next']);
  });

  test('does not let an older offer follow the newer model of a reload', async () => {
    const { reload, engine, source } = await startReloader();
    const { listener } = source.watched ?? assert.fail();
    let isNewest = true;
    source.offer = async () => {
      isNewest = false;
      return source.model('newer');
    };
    const reloaded = reload();
    // The older model was fetched before the reload looked, and waits for the reload.
    const found = listener.found(source.model('older'), () => isNewest);
    await reloaded;
    assert.equal(await found, false);
    assert.deepEqual(engine.swaps, ['newer']);
  });

  test('asks a folder for its reference answers before each swap, and what was fetched only where it came from', async () => {
    const { reload, engine, source, trial, health } = await startReloader();
    trial.prove = async (folder) => {
      throw new Error(`${folder}: gives another answer`);
    };
    await assert.rejects(reload(), { message: 'first: gives another answer' });
    assert.deepEqual([engine.swaps, health().failed_reload?.code, source.told], [[], 'load_failed', ['reject first']]);
    source.offer = async () => ({ ...source.model('fetched'), sha256: 'a' });
    await reload();
    assert.deepEqual(engine.swaps, ['fetched']);
  });

  test('does not wait for a slow source that the settings do not name any more, and tells nobody that it was taken', async () => {
    const { reloader, engine, source, settings } = await startReloader();
    const slow = new FakeSource('https://slow.example');
    slow.offer = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    settings.source = slow;
    const first = reloader.reload();
    await new Promise(setImmediate);
    // The settings are the same, so the second reload waits for the first.
    const second = reloader.reload();
    await new Promise(setImmediate);
    assert.deepEqual(slow.told, []);
    settings.source = source;
    source.offer = async () => source.model('wanted');
    const third = reloader.reload();
    await assert.rejects(first.done, { message: 'https://slow.example: is not what the settings name any more' });
    await Promise.all([second.done, third.done]);
    assert.deepEqual([engine.swaps, slow.told, source.told], [['wanted'], ['close'], ['close', 'accept wanted']]);
  });

  test('ends a trial when it is stopped', async () => {
    const { reloader, engine, trial } = await startReloader();
    trial.prove = (_, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    const { done } = reloader.reload();
    await new Promise(setImmediate);
    reloader.stop();
    await assert.rejects(done, { name: 'AbortError' });
    assert.deepEqual(engine.swaps, []);
  });

  test('waits for no source any more once it is stopped, and calls that no failure', async () => {
    const { reloader, source, health, lines } = await startReloader();
    source.offer = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    const { done } = reloader.reload();
    await new Promise(setImmediate);
    reloader.stop();
    await assert.rejects(done, { name: 'AbortError' });
    assert.deepEqual([source.watched?.signal.aborted, health().failed_reload], [true, undefined]);
    assert.ok(lines.every(({ level }) => level < 50));
  });
});
