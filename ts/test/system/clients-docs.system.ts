import assert from 'node:assert/strict';
import { test } from 'node:test';
import { docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';
import { runPython } from './python.ts';

test('the examples in Python of docs/clients.md print an answer', async (t) => {
  const server = await LiveServer.start(t);
  const blocks = docBlocks('clients.md').filter(({ language }) => language === 'python');
  assert.equal(blocks.length, 3);
  for (const { text } of blocks) {
    const program = text.replaceAll('http://127.0.0.1:21118', server.url.origin);
    const { stdout, stderr } = await runPython(['-c', program]);
    assert.match(stdout.replaceAll('\r\n', '\n'), /^(billing|tech) 0\.\d+\n$/, `${text}\n${stderr}`);
  }
});
