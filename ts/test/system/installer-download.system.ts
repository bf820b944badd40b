import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runCommand } from '../addon/program.ts';
import { accepted, installed, Place, programFolder, programPath, refusal, refused } from '../install/place.ts';
import { archiveName, Releases } from '../install/releases.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { hangUp, serveReleases } from './release-server.ts';

/** curl tries again after a second, and then after two. */
const withoutRetry = `for curl in $(which -a curl); do [ "$curl" = "$0" ] || break; done; exec "$curl" "$@" --retry 0`;

suite('install.sh', () => {
  test('installs the latest release of a host, makes settings, and says what comes next', async (t) => {
    const releases = new Releases(t)
      .add({ version: '0.9.0' })
      .add({ version: '0.10.0' })
      .add({ version: '0.10.0-rc.1' });
    const server = await serveReleases(t, releases);
    const place = new Place(t);
    accepted(await place.install([], { env: { SVC_RELEASES: server.url } }));
    assert.equal(await place.version(), '0.10.0');
    assert.deepEqual(place.kept, { names: ['current', 'versions'], versions: ['0.10.0'] });
    assert.deepEqual(server.asked, ['/latest/download/SHA256SUMS', `/download/v0.10.0/${archiveName('0.10.0')}`]);
    const settings = { generated: true, listen: '127.0.0.1:21118', device: 'auto' };
    assert.deepEqual(JSON.parse(readFileSync(place.settings, 'utf8')), settings);
  });

  test('installs from a plain folder, here or at a URL, in the folder that is named', async (t) => {
    const releases = new Releases(t).add({ version: '0.1.0' });
    const { url } = await serveReleases(t, releases);
    for (const from of [`${url}/flat/`, `file://${releases.folder}`, releases.folder]) {
      const place = new Place(t);
      const stdout = accepted(await place.install([`--from=${from}`, '--prefix', 'a folder/x', '--no-config']));
      assert.match(stdout, /a folder\/x\/bin\/svc serve\n/);
      assert.ok(existsSync(join(place.home, 'a folder', 'x', 'bin', 'svc')));
      assert.ok(!existsSync(place.settings));
    }
  });

  test('loads with wget where there is no curl, and sums with shasum or openssl where there is no sha256sum', async (t) => {
    const releases = new Releases(t).add({ version: '0.1.0' });
    const { url } = await serveReleases(t, releases);
    const tools = [
      'awk',
      'cat',
      'cp',
      'dirname',
      'env',
      'getconf',
      'gzip',
      'head',
      'ln',
      'mkdir',
      'mktemp',
      'mv',
      'ps',
    ];
    const others = ['readlink', 'rm', 'rmdir', 'sh', 'sleep', 'sort', 'tar', 'uname', 'wget'];
    for (const sum of ['shasum', 'openssl']) {
      const programs = await programFolder(t, {}, [...tools, ...others, sum]);
      const place = new Place(t);
      const options = { env: { SVC_RELEASES: url, PATH: programs } };
      accepted(await place.install(['--version', 'v0.1.0', '--no-config'], options));
      assert.equal(await place.version(), '0.1.0');
      const missing = await place.install(['--version', '0.3.0'], options);
      assert.match(refusal(missing), /\/download\/v0\.3\.0\/SHA256SUMS cannot be had: error \d+ of the download$/);
    }
  });

  test('needs no more than a shell and tools of POSIX', async (t) => {
    const releases = new Releases(t).add({ version: '0.1.0' }).add({ version: '0.2.0' });
    const applets = temporaryFolder(t);
    await runCommand('busybox', { args: ['--install', '-s', applets] });
    // Only what glibc itself brings is missing there.
    symlinkSync(await programPath('getconf'), join(applets, 'getconf'));
    for (const shell of [['/bin/dash'], ['/bin/bash', '--posix'], [join(applets, 'sh')]]) {
      const place = new Place(t);
      const options = { shell, env: { PATH: applets } };
      accepted(await place.install(['--from', releases.folder, '--version', '0.1.0', '--no-config'], options));
      accepted(await place.install(['--from', releases.folder, '--no-config'], options));
      accepted(await place.install(['--rollback'], options));
      assert.equal(await place.version(), '0.1.0');
      accepted(await place.install(['--uninstall'], options));
      assert.equal(place.kept, undefined);
    }
  });

  test('for a connection that ends in the middle, and for files that are not there', async (t) => {
    const { place, releases } = await installed(t);
    const broken = await serveReleases(t, releases, { [archiveName('0.2.0')]: hangUp });
    const fast = { programs: await programFolder(t, { curl: withoutRetry }), env: { SVC_RELEASES: broken.url } };
    await refused(place, [], /tar\.gz cannot be had: curl: \(18\)/, fast);
    await refused(place, ['--version', '0.3.0'], /\/download\/v0\.3\.0\/SHA256SUMS cannot be had: curl: \(22\) /, fast);
    await refused(
      place,
      ['--from', `${broken.url}/elsewhere`],
      /\/elsewhere\/SHA256SUMS cannot be had: curl: \(22\) .*404/,
      fast,
    );
    await refused(place, ['--from', place.home], /^\/.* has no SHA256SUMS$/);
    await refused(place, ['--from', 'http://127.0.0.1:1'], /SHA256SUMS cannot be had: curl: \(7\)/, fast);
  });

  test('a download that is interrupted from the terminal leaves nothing', async (t) => {
    const { place, releases } = await installed(t);
    let interrupt = () => {};
    const { url } = await serveReleases(t, releases, { [archiveName('0.2.0')]: () => interrupt() });
    const env = { SVC_RELEASES: url };
    const run = place.start(['--no-config'], { env });
    interrupt = () => run.interrupt();
    const { code, stderr } = await run.finished;
    assert.deepEqual([code, stderr], [130, '']);
    assert.deepEqual(place.kept, { names: ['current', 'versions'], versions: ['0.1.0'] });
    assert.deepEqual(readdirSync(join(place.prefix, 'lib', 'svc')).sort(), ['current', 'versions']);
  });
});
