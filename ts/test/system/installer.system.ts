import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { type Ended, runCommand } from '../addon/program.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { accepted, Place } from '../install/place.ts';
import { Releases } from '../install/releases.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runScript } from './python.ts';

const DEPLOY = join(REPOSITORY, 'deploy');

/** The command that becomes root, which mounts require. */
const AS_ROOT = process.geteuid?.() === 0 ? [] : ['sudo', '-n'];

/** The greatest exposure that systemd may find for the server, out of 100. */
const MAX_EXPOSURE = 15;

const folder = mkdtempSync(join(tmpdir(), 'svc-release-'));
const archives = join(folder, 'archives');
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true, force: true }));

// The archive of this platform is made in a folder of its own, except for Node, which is fetched only once.
before(() => {
  const nodes = join(REPOSITORY, 'dist', 'release', 'node');
  mkdirSync(nodes, { recursive: true });
  symlinkSync(nodes, join(folder, 'node'));
  const env = { ...process.env, SVC_RELEASE_FOLDER: folder };
  execFileSync(process.execPath, [join('scripts', 'release', 'archive.mjs'), '--local'], { cwd: REPOSITORY, env });
});

/** Starts the server that is installed in a place, asks it once, and ends it; its system calls go to `trace`. */
async function askOnce({ prefix, home, settings }: Place, trace: string): Promise<Ended> {
  const script = `strace -D -f -qq -o "$0" "$1" serve --listen 127.0.0.1:0 --config "$2" 2>log &
    for _ in $(seq 300); do grep -q 'model .* loaded' log && break; sleep 0.1; done
    curl -sSf "$(grep -o 'http://127.0.0.1:[0-9]*' log)/v1/systemone" -d "$3"
    kill $!; wait $!`;
  return runCommand('sh', {
    args: ['-c', script, trace, join(prefix, 'bin', 'svc'), settings, THREE_TYPES],
    cwd: home,
  });
}

/** Returns the system calls of a group of systemd, including those of the groups in it. */
function callsOf(group: string): Set<string> {
  const text = execFileSync('systemd-analyze', ['syscall-filter', group], { encoding: 'utf8' });
  const names = text
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  return new Set(names.flatMap((name) => (name.startsWith('@') ? [...callsOf(name)] : [name])));
}

test('a release that is installed serves and decides, and makes only the system calls that its service may make', async (t) => {
  const place = new Place(t);
  accepted(await place.install(['--from', archives]));
  const trace = join(place.home, 'trace');
  const { code, stdout, stderr } = await askOnce(place, trace);
  assert.equal(code, 0, stderr);
  assert.deepEqual(Object.keys(JSON.parse(stdout).answers), Object.keys(JSON.parse(THREE_TYPES).questions));
  const calls = [...readFileSync(trace, 'utf8').matchAll(/^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)/gm)];
  const made = new Set(calls.map(([, name]) => name ?? ''));
  assert.ok(made.has('listen'));
  const privileged = callsOf('@privileged');
  const allowed = [...callsOf('@system-service')].filter((name) => !privileged.has(name));
  assert.deepEqual(
    [...made].filter((name) => !allowed.includes(name)),
    [],
  );
});

test('no root is needed, and nobody else may change what is installed, whatever the mask of who installs it', async (t) => {
  const place = new Place(t);
  if (AS_ROOT.length === 0) chownSync(place.home, 65_534, 65_534);
  const mask = process.umask(0o002);
  t.after(() => process.umask(mask));
  accepted(await place.install(['--from', archives], { isUnprivileged: true }));
  const find = [place.prefix, '-not', '-type', 'l', '(', '-perm', '/022', '-o', '-not', '-perm', '-044', ')'];
  assert.equal(execFileSync('find', find).toString(), '');
});

/**
 * Installs a small version on a disk of `kilobytes`, then runs `mount` and installs the real version. Returns the
 * output of the second run, and the version and the files that are installed after it.
 */
async function onDisk(t: TestContext, kilobytes: number, mount: string): Promise<string> {
  const small = new Releases(t).add({ version: '0.0.1' });
  const disk = temporaryFolder(t);
  const script = `set -eu
    installer=$1 small=$2 archives=$3 disk=$4
    mount -t tmpfs -o size=${kilobytes}k none "$disk"
    sh "$installer" --from "$small" --prefix "$disk" --no-config >/dev/null
    ${mount}
    ! sh "$installer" --from "$archives" --prefix "$disk" --no-config 2>&1
    "$disk/bin/svc" --version
    ls -A "$disk/lib/svc" "$disk/lib/svc/versions"`;
  const [program = '', ...args] = [...AS_ROOT, 'unshare', '--mount', 'sh', '-c', script, 'sh'];
  const paths = [join(DEPLOY, 'install.sh'), small.folder, archives, disk];
  const { stdout, stderr } = await runCommand(program, { args: [...args, ...paths] });
  assert.equal(stderr, '');
  return stdout.replaceAll(disk, 'DISK');
}

suite('an upgrade leaves the version before as it was, with one line,', () => {
  const before = '0.0.1\nDISK/lib/svc:\ncurrent\nversions\n\nDISK/lib/svc/versions:\n0.0.1\n';

  test('on a disk that has no room for the archive, or none for what is in it', async (t) => {
    for (const kilobytes of [2_000, 120_000]) {
      const said = await onDisk(t, kilobytes, '');
      assert.equal(said, `install: DISK/lib/svc: no space is left there\n${before}`);
    }
  });

  test('on a disk that is read-only', async (t) => {
    const said = await onDisk(t, 2_000, 'mount -o remount,ro "$disk"');
    assert.equal(said, `install: DISK/lib/svc cannot be written; name another folder with --prefix\n${before}`);
  });
});

suite('what runs the server as a service', () => {
  /** Returns the path of a unit in a home folder that also holds the unit's program. */
  function unit(t: TestContext, ...path: string[]): string {
    const home = temporaryFolder(t);
    mkdirSync(join(home, '.local', 'bin'), { recursive: true });
    symlinkSync(process.execPath, join(home, '.local', 'bin', 'svc'));
    const text = readFileSync(join(DEPLOY, 'systemd', ...path), 'utf8');
    const file = join(home, 'svc.service');
    writeFileSync(file, text.replaceAll('/opt/svc', join(home, '.local')).replaceAll('%h', home));
    return file;
  }

  test('is found well by systemd, for the machine and for one user', async (t) => {
    const env = { XDG_RUNTIME_DIR: temporaryFolder(t) };
    for (const args of [
      ['verify', '--man=no', unit(t, 'svc.service')],
      ['--user', 'verify', '--man=no', unit(t, 'user', 'svc.service')],
      ['security', '--offline=true', '--no-pager', `--threshold=${MAX_EXPOSURE}`, unit(t, 'svc.service')],
    ]) {
      const { code, stderr } = await runCommand('systemd-analyze', { args, env });
      assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    }
  });

  test('is a property list that says how launchd starts it and restarts it', () => {
    const read = 'import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], "rb"))))';
    const text = execFileSync('python3', ['-c', read, join(DEPLOY, 'launchd', 'svc.plist')], { encoding: 'utf8' });
    const { Label, ProgramArguments, RunAtLoad, KeepAlive } = JSON.parse(text);
    assert.deepEqual([Label, RunAtLoad, KeepAlive], ['svc', true, { SuccessfulExit: false }]);
    assert.equal(ProgramArguments.length, 3);
    assert.match(
      ProgramArguments[2],
      /^exec "\$HOME\/\.local\/bin\/svc" serve --config "\$HOME\/\.config\/svc\/svc\.json" /,
    );
  });
});

test('the installers are found well by linters', async () => {
  const { SYSTEM_TEST_PYTHON: python = '' } = process.env;
  const shell = await runCommand(join(dirname(python), 'shellcheck'), { args: [join(DEPLOY, 'install.sh')] });
  assert.deepEqual([shell.code, shell.stdout, shell.stderr], [0, '', '']);
  const powershell = await runScript('check_powershell.py', [join(DEPLOY, 'install.ps1')]);
  assert.deepEqual([powershell.code, powershell.stdout, powershell.stderr], [0, '', '']);
});
