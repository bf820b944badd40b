import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { localEngineOptions } from '../../src/in-process/options.ts';
import { engineOptions } from '../../src/model/engine-options.ts';
import { loadConfig } from '../../src/settings/config.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('an engine gets its own settings and nothing else, secrets least of all', (t) => {
  const env = { SVC_API_KEY: 'at-least-16-characters', SVC_PASSWORD: 'a long password of the operator' };
  const [model, runtime] = [resolve('model'), resolve('libonnxruntime.so')];
  const { config } = loadConfig({ flags: { runtime, threads: '3' }, env, cwd: temporaryFolder(t) });
  assert.equal(config.apiKey.length, 1);
  // An engine in the caller's process has the same settings with the same defaults.
  assert.deepEqual(engineOptions(config, model), localEngineOptions({ model, runtime, threads: 3 }));
});
