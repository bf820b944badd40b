import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runProgram } from './program.ts';

test('worker threads answer as the main thread does, and end in the middle of a run without harm to it', async () => {
  const end = await runProgram('terminate-workers');
  assert.deepEqual(end, { code: 0, signal: null, stdout: '1', stderr: '' });
});
