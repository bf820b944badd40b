/** These tests are run by `scripts/release/arm64.mjs`, which passes the command that runs Node for arm64 here. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { IsolatedRegistry } from './isolated-registry.ts';

const { ARM64_NODE = '[]' } = process.env;
const NODE = JSON.parse(ARM64_NODE) as string[];
const PACKAGES = join(REPOSITORY, 'dist', 'release', 'node_modules', '@svc');
const PUBLISHED = ['engine-linux-arm64-gnu', 'model-small', 'server'];

/** A time-out that is long enough for an emulator. */
const TIMEOUT_MS = 1_200_000;

let registry: IsolatedRegistry;

before(async () => {
  registry = await IsolatedRegistry.start();
  for (const name of PUBLISHED) {
    const { code, stderr } = await registry.run(['npm', 'publish'], { cwd: join(PACKAGES, name) });
    assert.equal(code, 0, stderr);
  }
});
after(() => registry?.stop());

test('npm install on arm64 takes the packages for it, and they decide', async (t) => {
  const cwd = temporaryFolder(t);
  const npm = join(
    dirname(
      execFileSync('realpath', [execFileSync('which', ['npm'], { encoding: 'utf8' }).trim()], {
        encoding: 'utf8',
      }).trim(),
    ),
    'npm-cli.js',
  );
  const options = { cwd, timeoutMs: TIMEOUT_MS };
  const install = await registry.run([...NODE, npm, 'install', '@svc/server'], options);
  assert.equal(install.code, 0, install.stderr);
  assert.deepEqual(readdirSync(join(cwd, 'node_modules', '@svc')).sort(), PUBLISHED);

  const question = ['--state', 'I was charged twice.', '--question', 'refund: Money back?', '--json'];
  const program = join('node_modules', '@svc', 'server', 'bin', 'svc.js');
  const asked = await registry.run([...NODE, program, 'ask', '--threads', '1', ...question], options);
  assert.equal(asked.code, 0, asked.stderr);
  const { noul } = JSON.parse(asked.stdout).answers.refund;
  t.diagnostic(`p(refund) = ${noul}`);
  // This machine answers with the same packages' JavaScript and model; roundings to 8 bits may differ.
  const here = await registry.run(['node', join(REPOSITORY, 'bin', 'svc.js'), 'ask', ...question], { cwd });
  assert.ok(Math.abs(noul - JSON.parse(here.stdout).answers.refund.noul) < 2e-2);
});
