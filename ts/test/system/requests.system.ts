import assert from 'node:assert/strict';
import { test } from 'node:test';
import { THREE_TYPES } from '../addon/requests.ts';
import { KEY } from '../clients/refusing-servers.ts';
import { LiveServer } from '../real/live-server.ts';
import { runScript } from './python.ts';

for (const env of [{}, { SVC_API_KEY: KEY }]) {
  const key = 'SVC_API_KEY' in env ? 'on' : 'off';

  test(`plain requests is answered however it sends a body, with the key ${key}`, async (t) => {
    const server = await LiveServer.start(t, { env });
    const { answers } = JSON.parse(await server.answer(THREE_TYPES, { Authorization: `Bearer ${KEY}` }));
    const url = new URL('/v1/systemone', server.url).href;
    const { stdout, stderr } = await runScript('requests_client.py', [url, KEY], { input: THREE_TYPES });
    const sent = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(sent.length, 10, stderr);
    for (const [way, status, got] of sent) assert.deepEqual([status, got], [200, answers], way);
  });
}
