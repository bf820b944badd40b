/** Runs pages of the documentation whose blocks are commands for a running server, each followed by its output. */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { type DocBlock, docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const PAGES = ['quick-start.md', 'api.md', 'confidence.md', 'operations.md', 'security.md', 'migration.md'];
const ORIGIN = 'http://127.0.0.1:21118';

/** Runs a block in `folder`, and returns its output. */
async function run({ language, text }: DocBlock, folder: string, origin: string): Promise<string> {
  const own = text.replaceAll(ORIGIN, origin);
  const svc = `svc() { '${process.execPath}' '${join(REPOSITORY, 'bin', 'svc.js')}' "$@"; }`;
  const [program, args] =
    language === 'js'
      ? [process.execPath, ['--input-type=module', '-e', own]]
      : ['bash', ['-euo', 'pipefail', '-c', `${svc}\n${own}`]];
  const { code, stdout, stderr } = await runCommand(program, { args, cwd: folder });
  assert.equal(code, 0, `${own}\n${stdout}${stderr}`);
  return stdout;
}

/** Returns the keys and types of a JSON value, without its numbers and texts, which depend on model and machine. */
function shape(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, shape(own)]));
}

for (const page of PAGES) {
  test(`the blocks of docs/${page} run, and print what it shows`, async (t) => {
    const server = await LiveServer.start(t);
    const folder = temporaryFolder(t);
    symlinkSync(join(REPOSITORY, 'models'), join(folder, 'models'));
    // Port 0 stands for a free port, whatever else runs on this machine.
    writeFileSync(join(folder, 'svc.json'), JSON.stringify({ listen: '127.0.0.1:0' }));
    let printed = '';
    for (const block of docBlocks(page)) {
      if (block.language === 'json') assert.deepEqual(shape(JSON.parse(printed)), shape(JSON.parse(block.text)), page);
      else if (block.language === 'text') assert.equal(printed.trim(), block.text.trim(), page);
      // A block in `conf` is a settings file of another program.
      else if (block.language !== 'conf') printed = await run(block, folder, server.url.origin);
    }
  });
}
