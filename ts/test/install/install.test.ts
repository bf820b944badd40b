import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';
import { accepted, INSTALLER, installed, Place, programFolder, programPath, refusal } from './place.ts';
import { Releases } from './releases.ts';

if (process.platform !== 'win32') {
  suite('install.sh', { concurrency: 2 }, () => {
    test('installs the newest version of a folder, makes settings, and says what comes next', async (t) => {
      const releases = new Releases(t)
        .add({ version: '0.9.0' })
        .add({ version: '0.10.0' })
        .add({ version: '0.10.0-rc.1' });
      const place = new Place(t);
      const stdout = accepted(await place.install(['--from', releases.folder]));
      const svc = join(place.prefix, 'bin', 'svc');
      assert.equal(
        stdout,
        `svc 0.10.0 is installed in ${place.prefix}.
  start it:      ${svc} serve --config ${place.settings}
  look it over:  ${svc} doctor --config ${place.settings}
  find it:       export PATH=${place.prefix}/bin:"$PATH", in the profile of your shell
`,
      );
      assert.equal(await place.version(), '0.10.0');
      assert.deepEqual(place.kept, { names: ['current', 'versions'], versions: ['0.10.0'] });
      const settings = { generated: true, listen: '127.0.0.1:21118', device: 'auto' };
      assert.deepEqual(JSON.parse(readFileSync(place.settings, 'utf8')), settings);
    });

    test('installs in the folder that is named, from one that is named as a URL', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0' });
      const place = new Place(t);
      const args = [`--from=file://${releases.folder}/`, '--prefix', 'a folder/x', '--no-config'];
      assert.match(accepted(await place.install(args)), /'.*\/a folder\/x\/bin\/svc' serve\n/);
      assert.ok(existsSync(join(place.home, 'a folder', 'x', 'bin', 'svc')));
      assert.ok(!existsSync(place.settings));
    });

    test("upgrades, keeps the version before and the user's settings, and removes what is older", async (t) => {
      const { place, releases } = await installed(t);
      const settings = '{\n    "threads" : 2, "device": "cpu"\n}';
      place.writeSettings(settings);
      chmodSync(place.settings, 0o600);
      const stdout = accepted(await place.install(['--from', releases.folder]));
      assert.equal(
        stdout,
        `svc 0.2.0 is installed in ${place.prefix}, in place of 0.1.0.
  A server that runs is still 0.1.0: restart it.
  To go back:  sh ${place.prefix}/lib/svc/current/share/install.sh --rollback
`,
      );
      assert.equal(await place.version(), '0.2.0');
      assert.deepEqual([place.link('current'), place.link('previous')], ['versions/0.2.0', 'versions/0.1.0']);
      const text = settings.replace('"cpu"', '"cpu", "listen": "127.0.0.1:21118"');
      assert.equal(readFileSync(place.settings, 'utf8'), text);
      assert.equal(statSync(place.settings).mode & 0o777, 0o600);
      releases.add({ version: '0.3.0' });
      accepted(await place.install(['--from', releases.folder]));
      assert.deepEqual(place.kept?.versions, ['0.2.0', '0.3.0']);
      assert.equal(readFileSync(place.settings, 'utf8'), text);
    });

    test('takes no settings from an archive that has some, as old ones had', async (t) => {
      const releases = new Releases(t).add({ version: '0.0.6', files: { 'svc.json': '{"password": "adminadmin"}' } });
      const place = new Place(t);
      place.writeSettings('{"listen": ":4000", "device": "cpu"}');
      accepted(await place.install(['--from', releases.folder]));
      assert.equal(readFileSync(place.settings, 'utf8'), '{"listen": ":4000", "device": "cpu"}');
    });

    test('does nothing anew when the version is there, but mends what is missing around it', async (t) => {
      const { place, releases } = await installed(t);
      accepted(await place.install(['--from', releases.folder, '--version', '0.1.0', '--uninstall']));
      accepted(await place.install(['--from', releases.folder, '--version', '0.1.0']));
      for (const [args, hasSettings] of [
        [['--version', '0.1.0'], true],
        [['--version=0.1.0', '--no-config'], false],
      ] as const) {
        rmSync(join(place.prefix, 'bin', 'svc'));
        rmSync(place.settings);
        const stdout = accepted(await place.install([...args, '--from', releases.folder]));
        assert.equal(stdout, `svc 0.1.0 is installed already, in ${place.prefix}\n`);
        assert.deepEqual(place.kept, { names: ['current', 'versions'], versions: ['0.1.0'] });
        assert.equal(await place.version(), '0.1.0');
        assert.equal(existsSync(place.settings), hasSettings);
      }
    });

    test('installs anew a version that is damaged, when it is told to', async (t) => {
      const { place, releases } = await installed(t);
      writeFileSync(join(place.prefix, 'lib', 'svc', 'current', 'bin', 'svc'), '');
      const args = ['--from', releases.folder, '--version', '0.1.0'];
      assert.match(refusal(await place.install(args)), /^svc 0\.1\.0 is installed and does not run; .*--force$/);
      accepted(await place.install([...args, '--force']));
      assert.equal(await place.version(), '0.1.0');
      assert.deepEqual([place.link('current'), place.link('previous')], ['versions/0.1.0~2', 'versions/0.1.0']);
    });

    test('goes to an older version only when it is named', async (t) => {
      const { place, releases } = await installed(t);
      accepted(await place.install(['--from', releases.folder]));
      const older = new Releases(t).add({ version: '0.2.0-rc.2' });
      const line = refusal(await place.install(['--from', older.folder]));
      assert.equal(line, 'svc 0.2.0 is installed, which is newer; for the older one say --version 0.2.0-rc.2');
      assert.equal(await place.version(), '0.2.0');
      accepted(await place.install(['--from', releases.folder, '--version', '0.1.0']));
      assert.equal(await place.version(), '0.1.0');
    });

    test('goes back to the version before, and forth again', async (t) => {
      const { place, releases } = await installed(t);
      assert.match(refusal(await place.install(['--rollback'])), /^no version before this one is kept/);
      accepted(await place.install(['--from', releases.folder]));
      assert.match(accepted(await place.install(['--rollback'])), /^svc 0\.1\.0 is back, in place of 0\.2\.0\. /);
      assert.equal(await place.version(), '0.1.0');
      accepted(await place.install(['--rollback']));
      assert.equal(await place.version(), '0.2.0');
      assert.match(refusal(await new Place(t).install(['--rollback'])), /^svc is not installed in /);
    });

    test('runs beside itself without harm, as often as it likes', async (t) => {
      const { place, releases } = await installed(t);
      const runs = ['0.1.0', '0.2.0', '0.1.0', '0.2.0'].map((version) =>
        place.install(['--from', releases.folder, '--version', version, '--force']),
      );
      for (const run of await Promise.all(runs)) accepted(run);
      assert.match(await place.version(), /^0\.[12]\.0$/);
      assert.deepEqual(place.kept?.names, ['current', 'previous', 'versions']);
      assert.equal(place.kept?.versions.length, 2);
    });

    test('waits for another run', async (t) => {
      const { place, releases } = await installed(t);
      const unpacks = join(place.home, 'unpacks');
      const goOn = join(place.home, 'go on');
      const tar = `: >'${unpacks}'
while [ ! -e '${goOn}' ]; do sleep 0.1; done
exec '${await programPath('tar')}' "$@"`;
      const args = ['--from', releases.folder, '--no-config', '--force'];
      const first = place.install(args, { programs: await programFolder(t, { tar }) });
      await until(() => existsSync(unpacks));
      const sleep = `: >'${goOn}'; exec '${await programPath('sleep')}' "$@"`;
      accepted(await place.install([...args, '--version', '0.1.0'], { programs: await programFolder(t, { sleep }) }));
      assert.ok(existsSync(goOn));
      accepted(await first);
      assert.equal(await place.version(), '0.1.0');
    });

    test('waits for a run that removes everything, and installs then', async (t) => {
      const { place, releases } = await installed(t);
      const folder = join(place.prefix, 'lib', 'svc');
      const [removes, goOn] = [join(place.home, 'removes'), join(place.home, 'go on')];
      const rm = `case "$*" in
  *svc/versions*)
    : >'${removes}'
    while [ ! -e '${goOn}' ]; do sleep 0.1; done ;;
esac
exec '${await programPath('rm')}' "$@"`;
      const removal = place.install(['--uninstall'], { programs: await programFolder(t, { rm }) });
      await until(() => existsSync(removes));
      const realSleep = await programPath('sleep');
      const sleep = `: >'${goOn}'
for _ in 1 2 3 4 5 6 7 8 9 10; do [ ! -e '${folder}' ] || '${realSleep}' 0.1; done`;
      const programs = await programFolder(t, { sleep });
      accepted(await place.install(['--from', releases.folder, '--no-config'], { programs }));
      accepted(await removal);
      assert.equal(await place.version(), '0.2.0');
    });

    test('clears what a run left behind that was killed, and does not wait for it', async (t) => {
      const { place, releases } = await installed(t);
      const folder = join(place.prefix, 'lib', 'svc');
      const { stdout: dead } = await runCommand('sh', { args: ['-c', 'printf $$'] });
      // The process id in the second name belongs to another process by now: to this one.
      for (const run of [dead, process.pid]) writeFileSync(join(folder, `.run.${run}.1`), '');
      for (const name of ['.new.abc', join('versions', '0.1.9')]) mkdirSync(join(folder, name));
      accepted(await place.install(['--from', releases.folder]));
      assert.deepEqual(place.kept, { names: ['current', 'previous', 'versions'], versions: ['0.1.0', '0.2.0'] });
    });

    test('does not wait for a run that was killed and whose parent does not care', async (t) => {
      const { place, releases } = await installed(t);
      const shot = join(place.home, 'shot');
      const tar = `for run in '${place.prefix}'/lib/svc/.run.*; do run=\${run##*/.run.}; kill -9 "\${run%%.*}"; done
: >'${shot}'`;
      const args = ['--from', releases.folder, '--no-config'];
      // The program that replaces the shell does not know of the shell's child, so it never collects it.
      const shell = ['sh', '-c', 'sh "$@" & exec sleep 1000', 'sh'];
      place.start(args, { shell, programs: await programFolder(t, { tar }) });
      await until(() => existsSync(shot));
      accepted(await place.install(args));
      assert.deepEqual(place.kept, { names: ['current', 'previous', 'versions'], versions: ['0.1.0', '0.2.0'] });
    });

    test('is done also when something old cannot be removed', async (t) => {
      const { place, releases } = await installed(t);
      mkdirSync(join(place.prefix, 'lib', 'svc', 'versions', '0.0.9'));
      const rm = `case "$*" in *0.0.9*) echo 'rm: x: Permission denied' >&2; exit 1 ;; esac
exec '${await programPath('rm')}' "$@"`;
      accepted(await place.install(['--from', releases.folder], { programs: await programFolder(t, { rm }) }));
      assert.deepEqual(place.kept?.versions, ['0.0.9', '0.1.0', '0.2.0']);
      accepted(await place.install(['--rollback']));
      assert.deepEqual(place.kept?.versions, ['0.1.0', '0.2.0']);
    });

    test('leads to svc also from a folder of programs that lies elsewhere, and from a home with two names', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0' });
      const place = new Place(t);
      const elsewhere = join(place.home, 'dotfiles', 'linux', 'bin');
      mkdirSync(elsewhere, { recursive: true });
      mkdirSync(place.prefix);
      symlinkSync(elsewhere, join(place.prefix, 'bin'));
      const args = ['--from', releases.folder, '--no-config'];
      accepted(await place.install(args));
      assert.equal(await place.version(), '0.1.0');
      const name = join(temporaryFolder(t), 'home');
      symlinkSync(place.home, name);
      releases.add({ version: '0.2.0' });
      accepted(await place.install([...args, '--prefix', join(name, '.local')]));
      assert.equal(await place.version(), '0.2.0');
      accepted(await place.install(['--uninstall', '--prefix', join(name, '.local')]));
      assert.deepEqual(readdirSync(elsewhere), []);
    });

    test('prints commands that a shell takes, whatever the home is called', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0' });
      const place = new Place(t);
      const HOME = join(place.home, "Mia's $HOME");
      mkdirSync(HOME);
      const stdout = accepted(await place.install(['--from', releases.folder], { env: { HOME } }));
      const [, command = ''] = /start it: +(.*)\n/.exec(stdout) ?? [];
      const [, find = ''] = /find it: +(.*), in/.exec(stdout) ?? [];
      for (const line of [command, `${find}; ${command.replace(/^.*bin\/svc'/, 'svc')}`]) {
        const { stdout: given } = await runCommand('sh', { args: ['-c', line] });
        assert.equal(given, `0.1.0 was given: serve --config ${HOME}/.config/svc/svc.json\n`);
      }
    });

    test('removes svc and leaves settings and data, or removes them too', async (t) => {
      const { place } = await installed(t);
      place.writeSettings('{}');
      const data = join(place.home, '.local', 'state', 'svc');
      const cache = join(place.home, '.cache', 'svc');
      const fetched = 'a'.repeat(64);
      for (const folder of [data, cache]) {
        for (const name of [fetched, 'sources', '.fetch-1'])
          mkdirSync(join(folder, 'models', name), { recursive: true });
      }
      mkdirSync(join(data, 'models', 'own'));
      for (const file of [join(data, 'mine'), join(place.settings, '..', 'svc.api-key')]) writeFileSync(file, '');
      const stdout = accepted(await place.install(['--uninstall']));
      assert.equal(stdout, `svc is removed from ${place.prefix}.\n  The settings stay: ${place.settings}\n`);
      assert.equal(place.kept, undefined);
      assert.deepEqual(readdirSync(join(place.prefix, 'bin')), []);
      assert.ok(existsSync(place.settings) && existsSync(join(data, 'models', fetched)));
      const purged = accepted(await place.install(['--uninstall', '--purge']));
      assert.match(purged, /^svc is not installed in .*\n {2}Settings and data are removed as well\.\n$/);
      assert.ok(!existsSync(join(place.settings, '..')) && !existsSync(cache));
      assert.deepEqual([readdirSync(data).sort(), readdirSync(join(data, 'models'))], [['mine', 'models'], ['own']]);
    });

    test('does nothing when only a part of it comes through a pipe, wherever it ends, and all when it comes whole', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0' });
      const script = readFileSync(INSTALLER, 'utf8');
      const lengths = [...script.matchAll(/\n/g)].map(({ index }) => index).filter((_, line) => line % 12 === 0);
      lengths.push(...[2, 3, 5, 6, 9, 10, 11, 12].map((left) => script.length - left));
      for (const length of lengths) {
        const home = temporaryFolder(t);
        const args = ['-s', '--', '--from', releases.folder];
        await runCommand('sh', { args, input: script.slice(0, length), env: { HOME: home }, cwd: home });
        assert.deepEqual(readdirSync(home), [], `${length} of ${script.length} bytes`);
      }
      const home = temporaryFolder(t);
      const args = ['-s', '--', '--from', releases.folder, '--no-config'];
      const { code } = await runCommand('sh', { args, input: script, env: { HOME: home }, cwd: home });
      assert.deepEqual([code, readdirSync(home)], [0, ['.local']]);
    });

    test('leaves the files of others alone that have the name of svc', async (t) => {
      const releases = new Releases(t).add({ version: '0.1.0' });
      const place = new Place(t);
      const file = join(place.prefix, 'bin', 'svc');
      mkdirSync(join(file, '..'), { recursive: true });
      writeFileSync(file, 'mine');
      assert.match(refusal(await place.install(['--from', releases.folder])), /bin\/svc is not from this installer; /);
      accepted(await place.install(['--uninstall']));
      assert.equal(readFileSync(file, 'utf8'), 'mine');
      assert.equal(place.kept, undefined);
    });
  });
}
