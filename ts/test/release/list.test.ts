import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { ENGINES, MIN_GLIBC } from '../../src/parts.ts';
import { REPOSITORY } from '../addon/model-folders.ts';

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
  test('is the same in package.json, its lockfile, Cargo.toml and its lockfile', () => {
    const { version } = JSON.parse(read('package.json'));
    assert.match(version, /^\d+\.\d+\.\d+$/);
    assert.equal(JSON.parse(read('package-lock.json')).version, version);
    assert.equal(/\[workspace\.package\]\nversion = "(.+)"/.exec(read('Cargo.toml'))?.[1], version);
    assert.equal(/name = "svc-engine"\nversion = "(.+)"/.exec(read('Cargo.lock'))?.[1], version);
  });
});
