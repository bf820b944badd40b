import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';

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

test('the installers of a release look for releases where it was made', (t) => {
  const folder = temporaryFolder(t);
  const where = { GITHUB_SERVER_URL: 'https://example.com', GITHUB_REPOSITORY: 'me/it' };
  const env = { ...process.env, ...where, SVC_RELEASE_FOLDER: folder };
  execFileSync(process.execPath, [join('scripts', 'release', 'installers.mjs')], { cwd: REPOSITORY, env });
  const [sh = '', ps1 = ''] = ['install.sh', 'install.ps1'].map((name) =>
    readFileSync(join(folder, 'archives', name), 'utf8'),
  );
  assert.match(sh, /^releases=\$\{SVC_RELEASES:-https:\/\/example\.com\/me\/it\/releases\}$/m);
  assert.match(ps1, /^\$Releases = 'https:\/\/example\.com\/me\/it\/releases'$/m);
});
