import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runCommand } from '../addon/program.ts';
import { accepted, installed, Place, programFolder, programPath, refusal, refused, TOOLS } from '../install/place.ts';
import { archiveName, Releases } from '../install/releases.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { hangUp, serveReleases, serveSafely } from './release-server.ts';

/** A script that runs `curl` without retries; otherwise it would try again after one second, and then after two. */
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
      assert.match(stdout, /'.*\/a folder\/x\/bin\/svc' serve\n/);
      assert.ok(existsSync(join(place.home, 'a folder', 'x', 'bin', 'svc')));
      assert.ok(!existsSync(place.settings));
    }
  });

  test('loads with wget where there is no curl, and sums with shasum or openssl where there is no sha256sum', async (t) => {
    const releases = new Releases(t).add({ version: '0.1.0' });
    const { url } = await serveReleases(t, releases);
    for (const sum of ['shasum', 'openssl']) {
      const programs = await programFolder(t, {}, [...TOOLS, 'sh', 'wget', sum]);
      const place = new Place(t);
      const options = { env: { SVC_RELEASES: url, PATH: programs } };
      accepted(await place.install(['--version', 'v0.1.0', '--no-config'], options));
      assert.equal(await place.version(), '0.1.0');
      const missing = await place.install(['--version', '0.3.0'], options);
      assert.match(refusal(missing), /\/download\/v0\.3\.0\/SHA256SUMS cannot be had: error \d+ of the download$/);
    }
  });

  test('takes what it asks for by https only by https, wherever it is led', async (t) => {
    const releases = new Releases(t).add({ version: '0.1.0' });
    const plain = await serveReleases(t, releases);
    const safe = await serveSafely(t, releases);
    const trusted = { CURL_CA_BUNDLE: safe.certificate, WGETRC: safe.wgetSettings };
    for (const loader of ['curl', 'wget']) {
      const programs = await programFolder(t, {}, [...TOOLS, 'sh', 'sha256sum', loader]);
      const env = { ...trusted, PATH: programs };
      const place = new Place(t);
      safe.lead('/start', `${safe.url}/absolute`);
      safe.lead('/absolute', '/relative');
      accepted(await place.install(['--from', `${safe.url}/start`, '--no-config'], { env }));
      assert.equal(await place.version(), '0.1.0');
      safe.lead('/absolute', `${plain.url}/flat`);
      const other = new Place(t);
      const line = refusal(await other.install(['--from', `${safe.url}/start`, '--no-config'], { env }));
      assert.match(
        line,
        /\/start\/SHA256SUMS cannot be had: .*(?:"http" not supported|leads to http:.*, which is not https)/,
      );
      safe.lead('/start', `${safe.url}/start`);
      assert.match(
        refusal(await other.install(['--from', `${safe.url}/start`], { env })),
        /SHA256SUMS cannot be had: /,
      );
      assert.match(refusal(await other.install(['--from', `${safe.url}/nowhere/x`], { env })), /cannot be had: .*404/);
    }
    const wget = `exec '${await programPath('busybox')}' wget "$@"`;
    const programs = await programFolder(t, { wget }, [...TOOLS, 'sh', 'sha256sum']);
    const line = refusal(await new Place(t).install(['--from', safe.url], { env: { ...trusted, PATH: programs } }));
    assert.equal(line, 'curl or GNU Wget is needed for https and not installed');
    assert.deepEqual(plain.asked, []);
  });

  test('needs no more than a shell and tools of POSIX', async (t) => {
    const releases = new Releases(t).add({ version: '0.1.0' }).add({ version: '0.2.0' });
    const applets = temporaryFolder(t);
    await runCommand('busybox', { args: ['--install', '-s', applets] });
    // The only tool that BusyBox lacks is `getconf`, which comes with glibc.
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
