/** The pages about clients of others, read in an empty folder by somebody who types what they say. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runCommand } from '../addon/program.ts';
import { type DocBlock, docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runPython } from './python.ts';

const INSTALL_MS = 300_000;

/** A program of a page, and the line that installs what it imports; empty if it imports nothing. */
interface Example {
  readonly install: string;
  readonly program: DocBlock;
}

/** Returns the programs of the pages, each with the install line that stands above it. */
function examples(): Example[] {
  return ['clients.md', 'decisions.md'].flatMap((page) => {
    let install = '';
    return docBlocks(page).flatMap((program) => {
      if (program.language === 'sh') install = program.text.trim();
      return program.language === 'sh' ? [] : [{ install: neededBy(program, install), program }];
    });
  });
}

/** Returns the install line if the program needs it; some need only what the page has installed further up. */
function neededBy({ language, text }: DocBlock, install: string): string {
  const isImported = [...install.matchAll(/(?<= )(@?[\w./-]+)(?:@|==)/g)].some(([, name]) =>
    text.includes(`'${name}'`),
  );
  if (isImported || (language === 'python' && install.startsWith('pip'))) return install;
  return text.includes('@typesafe-ai/sdk') ? firstInstall() : '';
}

function firstInstall(): string {
  return (
    docBlocks('clients.md')
      .find(({ language }) => language === 'sh')
      ?.text.trim() ?? ''
  );
}

suite('the examples for Node of the pages on clients', () => {
  const programs = examples().filter(({ program }) => program.language === 'js');

  test('are as many as the pages have', () => assert.equal(programs.length, 7));

  for (const [at, { install, program }] of programs.entries()) {
    test(`${at + 1} prints an answer where only its install line was run: ${install || 'nothing to install'}`, async (t) => {
      const cwd = temporaryFolder(t);
      const server = await LiveServer.start(t);
      if (install !== '') {
        const args = ['-c', `${install} --no-audit --no-fund`];
        const { code, stderr } = await runCommand('bash', { args, cwd, timeoutMs: INSTALL_MS });
        assert.equal(code, 0, stderr);
      }
      writeFileSync(join(cwd, 'main.mjs'), program.text.replaceAll('http://127.0.0.1:21118', server.url.origin));
      const { stdout, stderr } = await runCommand(process.execPath, { args: ['main.mjs'], cwd });
      assert.match(stdout, /^(billing|tech) 0\.\d+\n$/, `${program.text}\n${stderr}`);
    });
  }
});

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

test('the install line for Python installs what its example imports, in a new environment', async (t) => {
  const cwd = temporaryFolder(t);
  const server = await LiveServer.start(t);
  const [example] = examples().filter(({ program }) => program.text.includes('typesafe_sdk'));
  assert.ok(example);
  const made = await runPython(['-m', 'venv', 'env'], { cwd });
  assert.equal(made.code, 0, made.stderr);
  const script = `. env/bin/activate && ${example.install} -q`;
  const { code, stderr } = await runCommand('bash', { args: ['-c', script], cwd, timeoutMs: INSTALL_MS });
  assert.equal(code, 0, stderr);
  const program = example.program.text.replaceAll('http://127.0.0.1:21118', server.url.origin);
  const { stdout } = await runCommand(join(cwd, 'env', 'bin', 'python'), { args: ['-c', program], cwd });
  assert.match(stdout, /^(billing|tech) 0\.\d+\n$/);
});
