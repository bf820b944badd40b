import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runPython } from './python.ts';

const FOLDER = join(REPOSITORY, 'ts', 'test', 'system', 'schemathesis');
const CREDENTIALS = { SVC_API_KEY: 'an-api-key-of-the-test', SVC_PASSWORD: 'a-password-of-the-test' };

test('schemathesis finds nothing that the server does otherwise than its document says', async (t) => {
  const server = await LiveServer.start(t, { env: CREDENTIALS });
  const document = new URL('/openapi.json', server.url).href;
  const config = ['--config-file', join(FOLDER, 'schemathesis.toml')];
  const options = ['--max-examples', '30', '--continue-on-failure', '--no-color'];
  const { code, stdout, stderr } = await runPython(['-m', 'schemathesis.cli', ...config, 'run', document, ...options], {
    cwd: temporaryFolder(t),
    env: { ...CREDENTIALS, SCHEMATHESIS_HOOKS: join(FOLDER, 'hooks.py') },
  });
  assert.deepEqual([code, stderr], [0, ''], stdout);
  const [, tested = '0'] = /Selected: (\d+)\/\1\n +Tested: \1\n/.exec(stdout) ?? [];
  assert.ok(Number(tested) >= 16, stdout);
});
