import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fitMemory, type MemoryLimit } from '../../src/model/memory.ts';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MIB = 2 ** 20;
const SETTINGS = { stateCacheBytes: 64 * MIB, maxTokens: 131_072 };

/** Returns a folder of 10 MiB, and a limit of `mebibytes` MiB, of which a server itself takes 100 MiB. */
function place(t: TestContext, mebibytes: number): [string, MemoryLimit[]] {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'model.onnx'), Buffer.alloc(10 * MIB));
  return [folder, [{ bytes: mebibytes * MIB, origin: 'a limit', serverBytes: 100 * MIB }]];
}

suite('the memory that a process may take', () => {
  test('without a limit keeps the settings as they are', (t) => {
    const [folder] = place(t, 0);
    assert.deepEqual(fitMemory(folder, SETTINGS, []), { stateCacheBytes: 64 * MIB, notes: [] });
  });

  test('that all fits into says nothing', (t) => {
    const [folder, limits] = place(t, 110 + 64 + 432);
    assert.deepEqual(fitMemory(folder, SETTINGS, limits), { stateCacheBytes: 64 * MIB, notes: [] });
  });

  test('that a long request does not fit into says so, and what would help', (t) => {
    const [folder, limits] = place(t, 110 + 64 + 431);
    const { stateCacheBytes, notes } = fitMemory(folder, SETTINGS, limits);
    assert.equal(stateCacheBytes, 64 * MIB);
    assert.deepEqual(notes, [
      'max_tokens: one request can take 432 MiB more, which are not left of the 605 MiB of memory that the process may ' +
        'take (a limit): it would end the server; raise that limit, or lower max_tokens or state_cache_bytes',
    ]);
    assert.deepEqual(fitMemory(folder, { ...SETTINGS, maxTokens: 4096 }, limits).notes, []);
  });

  test('that the kept states do not fit into keeps fewer', (t) => {
    const [folder, limits] = place(t, 150);
    const { stateCacheBytes, notes } = fitMemory(folder, SETTINGS, limits);
    assert.equal(stateCacheBytes, 40 * MIB);
    assert.equal(
      notes[0],
      'state_cache_bytes: 64 MiB do not fit into the 150 MiB of memory that the process may take (a limit): 40 MiB are kept',
    );
  });

  test('that the model does not fit into refuses it', (t) => {
    const [folder, limits] = place(t, 109);
    assert.throws(() => fitMemory(folder, SETTINGS, limits), {
      name: 'Refusal',
      message: `${folder}: needs 110 MiB, more than the 109 MiB of memory that the process may take (a limit): raise that limit`,
    });
  });

  test('is compared with one graph and the weights beside it, whatever else is in the folder', (t) => {
    const [folder, limits] = place(t, 115);
    writeFileSync(join(folder, 'model.onnx_data'), Buffer.alloc(4 * MIB));
    for (const other of ['larger.onnx', 'checkpoint.safetensors']) {
      writeFileSync(join(folder, other), Buffer.alloc(50 * MIB));
    }
    assert.equal(fitMemory(folder, SETTINGS, limits).stateCacheBytes, MIB);
  });

  test('is compared with an encoder and its second graph together, also in the folder of a precision', (t) => {
    const [, limits] = place(t, 115);
    const folder = temporaryFolder(t);
    mkdirSync(join(folder, 'onnx', 'fp32'), { recursive: true });
    const inside = (name: string) => join(folder, 'onnx', 'fp32', name);
    writeFileSync(inside('encoder.onnx'), Buffer.alloc(9 * MIB));
    writeFileSync(inside('scorer.onnx.data'), Buffer.alloc(4 * MIB));
    writeFileSync(inside('scorer.onnx'), Buffer.alloc(MIB));
    assert.equal(fitMemory(folder, SETTINGS, limits).stateCacheBytes, MIB);
  });

  test('is compared with a graph in the folder onnx where the model has none of its own', (t) => {
    const [, limits] = place(t, 115);
    const folder = temporaryFolder(t);
    mkdirSync(join(folder, 'onnx'));
    writeFileSync(join(folder, 'onnx', 'model.onnx'), Buffer.alloc(14 * MIB));
    assert.equal(fitMemory(folder, SETTINGS, limits).stateCacheBytes, MIB);
  });

  test('is the least of several limits', (t) => {
    const [folder, limits] = place(t, 150);
    const [, more] = place(t, 120);
    assert.equal(fitMemory(folder, SETTINGS, [...limits, ...more]).stateCacheBytes, 10 * MIB);
  });
});

if (process.platform === 'linux') {
  test('a server whose model does not fit into the memory that it may reserve does not start', async (t) => {
    const cwd = temporaryFolder(t);
    const folder = fixture('marker');
    const args = [
      process.execPath,
      join(REPOSITORY, 'bin/svc.js'),
      'serve',
      '--listen',
      '127.0.0.1:0',
      '--model',
      folder,
    ];
    const { code, stderr } = await runCommand('sh', {
      args: ['-c', 'ulimit -d 204800 && exec "$@"', 'sh', ...args],
      cwd,
    });
    assert.equal(code, 1, stderr);
    assert.match(stderr, / needs \d+ MiB, more than the 200 MiB of memory .* \(ulimit -d\): raise that limit$/m);
    assert.doesNotMatch(stderr, /allocation/);
  });
}
