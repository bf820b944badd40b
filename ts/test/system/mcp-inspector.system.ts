import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const LAUNCHER = fileURLToPath(new URL('../../../bin/svc.js', import.meta.url));
const [, INSPECTOR = ''] =
  /(@modelcontextprotocol\/inspector@\S+)/.exec(readFileSync(join(REPOSITORY, 'docs', 'stacks', 'mcp.md'), 'utf8')) ??
  [];

/** Returns the Node of the archives, since the inspector does not run on the oldest Node that the server runs on. */
function newerNode(): string {
  const program = `
    const { nodeFolder } = await import('./scripts/release/node.mjs');
    const { chosenPlatforms } = await import('./scripts/release/platforms.mjs');
    process.stdout.write(nodeFolder(chosenPlatforms([])[0]));
  `;
  const folder = execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: REPOSITORY });
  return join(REPOSITORY, String(folder), 'bin', 'node');
}

suite("the official inspector's command line", { timeout: 600_000 }, () => {
  test('lists the tools and calls them, on stdin and stdout and over HTTP', async (t) => {
    const folder = temporaryFolder(t);
    execFileSync(
      'npm',
      ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', INSPECTOR],
      {
        cwd: folder,
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    );
    const node = newerNode();
    const { bin } = JSON.parse(
      readFileSync(join(folder, 'node_modules', '@modelcontextprotocol', 'inspector', 'package.json'), 'utf8'),
    );
    const program = join(folder, 'node_modules', '@modelcontextprotocol', 'inspector', bin['mcp-inspector']);
    const inspect = async (server: readonly string[], args: readonly string[]) => {
      const { code, stdout, stderr } = await runCommand(node, {
        args: [program, '--cli', ...server, ...args],
        cwd: folder,
        env: { HOME: folder },
        timeoutMs: 120_000,
      });
      assert.equal(code, 0, stderr + stdout);
      return JSON.parse(stdout);
    };

    const http = new SvcProcess(t, ['mcp', '--listen', '127.0.0.1:0', '--device', 'cpu'], { cwd: temporaryFolder(t) });
    for (const server of [[process.execPath, LAUNCHER, 'mcp'], [await http.url()]]) {
      const { tools } = await inspect(server, ['--method', 'tools/list']);
      assert.deepEqual(
        tools.map(({ name }: { name: string }) => name),
        ['decide', 'classify', 'score', 'check'],
      );
      const call = ['--method', 'tools/call', '--tool-name', 'check'];
      const state = 'state=My card was charged twice and nobody answers my mails';
      const values = ['--tool-arg', state, '--tool-arg', 'statement=Does the customer want money back?'];
      const { structuredContent, isError } = await inspect(server, [...call, ...values]);
      assert.notEqual(isError, true);
      assert.equal(structuredContent.probability, 0.269153);
    }
  });
});
