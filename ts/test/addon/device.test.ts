import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { loadEngine } from '../../src/engine/addon.ts';
import { engineOptions, fixture, startEngine, textOf } from './model-folders.ts';
import { THREE_TYPES } from './requests.ts';

const model = fixture('shared-state');

/** The devices that the shipped builds lack: CUDA on every platform, and those that belong to another platform. */
const ABSENT: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ['gpu', 'cuda', 'coreml', 'directml'],
  darwin: ['cuda', 'directml'],
  win32: ['cuda', 'coreml'],
};

suite('the device', () => {
  test('cpu is the processor', async (t) => {
    const engine = await startEngine(t, { model, device: 'cpu' });
    assert.deepEqual([engine.info().device, engine.info().deviceNotes], ['cpu', []]);
  });

  test('auto answers, and says in one line each what it could not use', async (t) => {
    const engine = await startEngine(t, { model, device: 'auto' });
    const { device, deviceNotes } = engine.info();
    assert.match(device, /^(cpu|coreml|directml)$/);
    assert.ok(deviceNotes.length > 0);
    for (const note of deviceNotes) assert.match(note, /^(cuda|coreml|directml): [^\n]+$/);
    assert.ok(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
  });

  for (const device of ABSENT[process.platform] ?? []) {
    test(`${device} refuses with one line where there is none, and never falls back`, async () => {
      await assert.rejects(loadEngine(engineOptions({ model, device })), {
        code: 'bad_device',
        message: new RegExp(`^device ${device}: [^\\n]+$`),
      });
    });
  }

  test('of an unknown name refuses and lists the names', async () => {
    await assert.rejects(loadEngine(engineOptions({ model, device: 'tpu' })), {
      code: 'bad_device',
      message: 'device tpu: must be one of auto, cpu, gpu, cuda, coreml, directml',
    });
  });
});

suite('threads', () => {
  for (const threads of [257, 100_000]) {
    test(`may not be ${threads}`, async () => {
      await assert.rejects(loadEngine(engineOptions({ model, threads })), {
        code: 'bad_threads',
        message: `threads must be a whole number from 1 to 256, not ${threads}`,
      });
    });
  }

  test('0 takes what the machine has', async (t) => {
    const engine = await startEngine(t, { model, threads: 0 });
    assert.ok(engine.info().threads >= 1 && engine.info().threads <= 256);
  });

  test('more than the machine has work', async (t) => {
    const engine = await startEngine(t, { model, threads: 16 });
    assert.equal(engine.info().threads, 16);
    assert.ok(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
  });
});
