import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { docBlocks } from '../doc-blocks.ts';
import { SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

test('the snippet of docs/stacks/mcp.md prints an answer', async (t) => {
  const svc = new SvcProcess(t, ['mcp', '--listen', '127.0.0.1:0', '--device', 'cpu'], { cwd: temporaryFolder(t) });
  const blocks = docBlocks('stacks/mcp.md').filter(({ language }) => language === 'js');
  assert.equal(blocks.length, 1);
  const program = blocks[0]?.text.replaceAll('http://127.0.0.1:21120/mcp', await svc.url()) ?? '';
  const { stdout, stderr } = await runCommand(process.execPath, {
    args: ['--input-type=module', '-e', program],
    cwd: REPOSITORY,
  });
  assert.match(stdout, /^billing 0\.\d+\n$/, stderr);
});
