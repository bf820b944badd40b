import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { ENGINES, MIN_GLIBC } from '../../src/engine/parts.ts';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const read = (...path: string[]) => readFileSync(join(REPOSITORY, ...path), 'utf8');

suite('the platforms of a release', () => {
  test('are those that the program knows packages for', () => {
    const { platforms, glibc } = JSON.parse(read('npm', 'platforms.json'));
    const engines = platforms.map((one: { os: string; cpu: string; name: string }) => [
      `${one.os} ${one.cpu}`,
      one.name,
    ]);
    const expected = Object.entries(ENGINES).map(([key, name]) => [key, name.replace('@svc/engine-', '')]);
    assert.deepEqual(engines.sort(), expected.sort());
    assert.equal(glibc, MIN_GLIBC);
  });
});

suite('the version', () => {
  const FILES = ['package.json', 'package-lock.json', 'Cargo.toml', 'Cargo.lock', 'npm', 'scripts', 'deploy'];
  const version = (cwd: string, ...args: string[]) =>
    runCommand(process.execPath, { args: [join('scripts', 'release', 'version.mjs'), ...args], cwd });

  test('is the same wherever it stands', async () => {
    const { code, stdout, stderr } = await version(REPOSITORY);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, `version: ${JSON.parse(read('package.json')).version}\n`);
  });

  test('is written everywhere by one command, and missed where somebody changes it', async (t) => {
    const cwd = temporaryFolder(t);
    for (const name of FILES) cpSync(join(REPOSITORY, name), join(cwd, name), { recursive: true });
    assert.equal((await version(cwd, '12.34.56')).code, 0);
    assert.equal((await version(cwd)).stdout, 'version: 12.34.56\n');
    for (const file of ['package-lock.json', 'Cargo.toml', 'Cargo.lock', join('deploy', 'helm', 'svc', 'Chart.yaml')]) {
      const text = readFileSync(join(cwd, file), 'utf8');
      writeFileSync(join(cwd, file), text.replace('12.34.56', '12.34.57'));
      const { code, stderr } = await version(cwd);
      assert.equal(code, 1);
      assert.match(stderr, /^release: \S+ has another version than package\.json, which has 12\.34\.56\n$/);
      writeFileSync(join(cwd, file), text);
    }
  });

  test('is not written when it is none', async () => {
    const { code, stderr } = await version(REPOSITORY, 'v1.2');
    assert.deepEqual([code, stderr], [1, 'release: v1.2 is no version such as 1.2.3\n']);
  });
});
