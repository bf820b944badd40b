/** A process loads the library of ONNX Runtime only once, so these tests run in turn in a process of their own. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { defaultRuntime, loadEngine } from '../../src/engine/addon.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { engineOptions, fixture, startEngine, textOf } from './model-folders.ts';
import { THREE_TYPES } from './requests.ts';

const ADDON = fileURLToPath(new URL('../../native/svc_engine.node', import.meta.url));
const model = fixture('marker');

suite('a runtime that is', () => {
  const bad: readonly [what: string, code: string, make: (path: string) => void][] = [
    ['not there', 'runtime_not_found', () => {}],
    ['a folder', 'runtime_not_found', (path) => mkdirSync(path)],
    ['an empty file', 'runtime_failed', (path) => writeFileSync(path, '')],
    ['a text', 'runtime_failed', (path) => writeFileSync(path, 'not a library\nat all\n')],
    ['another library', 'runtime_failed', (path) => copyFileSync(ADDON, path)],
  ];
  for (const [what, code, make] of bad) {
    test(`${what} refuses with one line that names it`, async (t) => {
      const runtime = join(temporaryFolder(t), 'libonnxruntime.so');
      make(runtime);
      await assert.rejects(loadEngine(engineOptions({ model, runtime })), (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, /^ONNX Runtime library [^\n]+$/);
        assert.ok(error.message.includes(runtime));
        return true;
      });
    });
  }
});

test('after all of these the right one still works in the same process', async (t) => {
  const engine = await startEngine(t, { model });
  assert.ok(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
});

test('a second one beside it refuses: a process has one for ever', async (t) => {
  const runtime = join(temporaryFolder(t), basename(defaultRuntime()));
  copyFileSync(defaultRuntime(), runtime);
  await assert.rejects(loadEngine(engineOptions({ model, runtime })), {
    code: 'runtime_failed',
    message: /^ONNX Runtime library .+: this process already uses .+$/,
  });
});
