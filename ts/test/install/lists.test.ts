import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';

const read = (...path: string[]) => readFileSync(join(REPOSITORY, ...path), 'utf8');

interface Platforms {
  readonly glibc: string;
  readonly platforms: readonly { readonly archive: string; readonly os: string }[];
}

test('the installers know the platforms and the glibc of a release, and no others', () => {
  const { glibc, platforms } = JSON.parse(read('npm', 'platforms.json')) as Platforms;
  const [forWindows, forOthers] = [true, false].map((isWindows) =>
    platforms.filter(({ os }) => (os === 'win32') === isWindows).map(({ archive }) => archive),
  );
  const sh = read('deploy', 'install.sh');
  assert.deepEqual(/^archives='(.+)'$/m.exec(sh)?.[1]?.split(' '), forOthers);
  assert.equal(/^oldest_glibc=(.+)$/m.exec(sh)?.[1], glibc);
  assert.deepEqual([/^\$Platform = '(.+)'$/m.exec(read('deploy', 'install.ps1'))?.[1]], forWindows);
});

test('the installers look for releases at the same host', () => {
  const [, sh] = /^releases=\$\{SVC_RELEASES:-(.+)\}$/m.exec(read('deploy', 'install.sh')) ?? [];
  const [, ps1] = /^\$Releases = '(.+)'$/m.exec(read('deploy', 'install.ps1')) ?? [];
  assert.ok(sh?.startsWith('https://'));
  assert.equal(sh, ps1);
});
