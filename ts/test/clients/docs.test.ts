import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';

const PAGE = readFileSync(join(REPOSITORY, 'docs', 'clients.md'), 'utf8');

suite('docs/clients.md', () => {
  test('has an example of each client for Node, and each prints an answer', async (t) => {
    const server = await LiveServer.start(t);
    const blocks = docBlocks('clients.md').filter(({ language }) => language === 'js');
    assert.equal(blocks.length, 6);
    for (const { text } of blocks) {
      const program = text.replaceAll('http://127.0.0.1:21118', server.url.origin);
      // Node finds the packages from the folder that the program runs in.
      const args = ['--input-type=module', '-e', program];
      const { stdout, stderr } = await runCommand(process.execPath, { args, cwd: REPOSITORY });
      assert.match(stdout, /^(billing|tech) 0\.\d+\n$/, `${text}\n${stderr}`);
    }
  });

  test('says the versions that the tests run', () => {
    const { devDependencies } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
    const python = readFileSync(join(REPOSITORY, 'ts', 'test', 'system', 'requirements.txt'), 'utf8');
    const [, typesafe] = /^typesafe-sdk==(\S+)$/m.exec(python) ?? [];
    const versions = ['@typesafe-ai/sdk', 'ai', '@openrouter/sdk', 'openai'].map((name) => devDependencies[name]);
    versions[1] += `, ${devDependencies['@ai-sdk/typesafe-ai']}`;
    const table = [...PAGE.matchAll(/^\| (?:npm|PyPI) .* \| (\S.*) \|$/gm)].map(([, version]) => version);
    assert.deepEqual(table, [...versions, typesafe]);
  });

  test('and the page on decisions have install lines with those versions, for npm and for pip', () => {
    const { devDependencies } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
    const installs = ['clients.md', 'decisions.md'].flatMap((page) =>
      docBlocks(page).filter(({ language }) => language === 'sh'),
    );
    const npm = installs.flatMap(({ text }) => /^npm install (.+)$/m.exec(text)?.[1]?.split(' ') ?? []);
    const packages = npm.map((name) => name.replace(/(?<=.)@.*$/, ''));
    const expected = ['@typesafe-ai/sdk', 'ai', '@ai-sdk/typesafe-ai', '@openrouter/sdk', 'openai', 'openai'];
    assert.deepEqual(packages, expected);
    assert.deepEqual(
      npm,
      packages.map((name) => `${name}@${devDependencies[name]}`),
    );
    const python = readFileSync(join(REPOSITORY, 'ts', 'test', 'system', 'requirements.txt'), 'utf8');
    const pip = installs.flatMap(({ text }) => /^pip install (.+)$/m.exec(text)?.[1]?.split(' ') ?? []);
    assert.equal(pip.length, 1);
    for (const pinned of pip) assert.match(python, new RegExp(`^${pinned.replaceAll('.', '\\.')}$`, 'm'));
  });
});
