import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { temporaryFolder } from '../temporary-folder.ts';
import { runProgram } from './program.ts';

/** The variables that name the folders where programs keep data about their user, on any platform. */
const HOMES = ['HOME', 'USERPROFILE', 'XDG_CACHE_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'APPDATA', 'LOCALAPPDATA'];
const TEMPORARY = ['TMPDIR', 'TEMP', 'TMP'];

test('a decision leaves no file behind: the uploader of ONNX Runtime is off', async (t) => {
  const folder = temporaryFolder(t);
  // By default, the shipped library writes into all of these folders as soon as its environment is built.
  const env = Object.fromEntries([...HOMES, ...TEMPORARY].map((name) => [name, folder]));
  const { code, stdout, stderr } = await runProgram('decide-once', { env });
  assert.deepEqual([code, stderr], [0, '']);
  assert.match(stdout, /^\{"model":"svc","answers":\{"refund":/);
  assert.deepEqual(readdirSync(folder, { recursive: true }), []);
});
