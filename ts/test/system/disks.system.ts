/** Tests with disks that are full, read-only, or both in turn; each is a tmpfs that only its process sees. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fixture, REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { freePort } from '../free-port.ts';
import { tarOf } from '../model/archives.ts';
import { HostileServer } from '../model/hostile-server.ts';
import { filesOfFixture } from '../model/hub/hub-world.ts';
import { StandInHub } from '../model/hub/stand-in-hub.ts';
import { ProcessOutput } from '../process-output.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';

/** The command that becomes root, which mounts require. */
const AS_ROOT = process.geteuid?.() === 0 ? [] : ['sudo', '-n'];

const SVC = [process.execPath, join(REPOSITORY, 'bin', 'svc.js')];

/** Returns the command that runs a shell script in a mount namespace of its own; `$1` is the disk, then the program. */
function alone(script: string, disk: string): [string, ...string[]] {
  const [program = '', ...args] = [...AS_ROOT, 'unshare', '--mount', 'sh', '-c', `set -eu; ${script}`, 'sh', disk];
  return [program, ...args];
}

suite('the first start on a full disk', () => {
  test('says that it is full, leaves nothing behind, and is as good as new when there is room', async (t) => {
    const disk = temporaryFolder(t);
    const script = `
      disk=$1; shift
      mount -t tmpfs -o size=64k none "$disk"; cd "$disk"
      head -c 64k /dev/zero >filler 2>/dev/null || true
      ! "$@" 2>&1
      ls -A
      rm filler
      touch -d '1 hour ago' .svc-0123456789ab.tmp
      "$@" 2>log & pid=$!
      until grep -q listening log; do sleep 0.1; done
      kill $pid; wait $pid
      rm log; ls -A`;
    const [program, ...args] = alone(script, disk);
    const { stdout, stderr, code } = await runCommand(program, {
      args: [...args, ...SVC, 'serve', '--listen', '127.0.0.1:0', '--model', fixture('marker')],
      env: { SVC_DATA: '', SVC_PASSWORD: '' },
    });
    assert.equal(code, 0, stderr);
    const why = `svc.password: cannot be written to ${disk} (ENOSPC: the disk is full)`;
    assert.deepEqual(stdout.trimEnd().split('\n').slice(1), [
      `${why}; set SVC_PASSWORD, or SVC_DATA to a writable folder`,
      'filler',
      'svc.json',
      'svc.password',
    ]);
  });
});

suite('SVC_DATA on a read-only disk', () => {
  /** Runs a server that fetches its model and whose disk `script` makes; returns its log and its health record. */
  async function serve(t: TestContext, script: string) {
    const server = await HostileServer.start(t);
    const folder = fixture('marker');
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = files.map((file) => join(file.parentPath, file.name));
    server.serve(
      '/m.tar.gz',
      tarOf(Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path)]))),
    );
    const settings = {
      model: `${server.url}/m.tar.gz`,
      listen: `127.0.0.1:${await freePort()}`,
      password: 'a-password',
    };
    const cwd = folderWithConfig(t, settings);
    const disk = temporaryFolder(t);
    const [program, ...args] = alone(script, disk);
    const env = { ...process.env, SVC_DATA: disk };
    const child = spawn(program, [...args, ...SVC, 'serve'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    t.after(() => child.kill('SIGTERM'));
    const output = new ProcessOutput(child);
    await output.logged(/model .* loaded/);
    // During this time the server also looks for its model again.
    await sleep(1000);
    const health = (await (await fetch(`http://${settings.listen}/health`)).json()) as { fallback: boolean };
    child.kill('SIGTERM');
    const { stderr } = await output.finished;
    const lines = stderr
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    return { health, disk, warned: lines.filter(({ level }) => level > 30).map(({ msg }) => msg) };
  }

  test('lets the embedded model answer, with one line that says why', async (t) => {
    const { health, disk, warned } = await serve(t, 'disk=$1; shift; mount -t tmpfs -o ro none "$disk"; exec "$@"');
    assert.equal(health.fallback, true);
    assert.deepEqual(warned, [
      `models cannot be kept in ${join(disk, 'models')} (EROFS: the disk is read-only); set SVC_DATA; the embedded model answers until it can be had`,
    ]);
  });

  test('lets the model answer that was kept there when it could be written', async (t) => {
    const { health, warned } = await serve(
      t,
      `disk=$1; shift; mount -t tmpfs none "$disk"
       "$@" 2>"$disk/log" & pid=$!
       until grep -q 'model .* loaded' "$disk/log"; do sleep 0.1; done
       kill $pid; wait $pid
       mount -o remount,ro "$disk"; exec "$@"`,
    );
    assert.equal(health.fallback, false);
    assert.deepEqual(warned, []);
  });
});

suite('the cache of a hub', () => {
  for (const [what, script, why] of [
    ['is full', 'mount -t tmpfs -o size=1m none "$disk"', 'ENOSPC: the disk is full'],
    ['is read-only', 'mount -t tmpfs -o ro none "$disk"', 'EROFS: the disk is read-only'],
    [
      'has become read-only',
      'mount -t tmpfs none "$disk"; mkdir -p "$disk/hub/models--org--name/blobs"; mount -o remount,ro "$disk"',
      'EROFS: the disk is read-only',
    ],
  ] as const) {
    test(`on a disk that ${what} ends a pull with one line that says so`, async (t) => {
      const hub = await StandInHub.start(t, { storage: 'here' });
      hub.publish('org/name', { ...(await filesOfFixture('marker')), 'model.onnx_data': Buffer.alloc(2 ** 21) });
      const [disk, data] = [temporaryFolder(t), temporaryFolder(t)];
      const [program, ...args] = alone(`disk=$1; shift; ${script}; exec "$@"`, disk);
      const { code, stdout, stderr } = await runCommand(program, {
        args: [...args, ...SVC, 'model', 'pull', 'hf:org/name', '--device', 'cpu'],
        env: { HF_HOME: disk, HF_HUB_CACHE: '', HF_ENDPOINT: hub.url, HF_TOKEN: '', SVC_DATA: data },
        cwd: temporaryFolder(t),
      });
      const message = `hf:org/name: files of a hub cannot be kept in ${join(disk, 'hub')} (${why}); set HF_HOME\n`;
      assert.deepEqual([code, stdout, stderr], [1, '', message]);
    });
  }

  test('beside a full disk for models ends a pull with one line, and the next one needs no hub', async (t) => {
    const hub = await StandInHub.start(t, { storage: 'here' });
    hub.publish('org/name', { ...(await filesOfFixture('marker')), 'model.onnx_data': Buffer.alloc(2 ** 21) });
    const [disk, home] = [temporaryFolder(t), temporaryFolder(t)];
    const script = 'disk=$1; shift; mount -t tmpfs -o size=1m none "$disk"; exec "$@"';
    const env = { HF_HOME: home, HF_HUB_CACHE: '', HF_ENDPOINT: hub.url, HF_TOKEN: '' };
    const pull = [...SVC, 'model', 'pull', 'hf:org/name', '--device', 'cpu'];
    const [program, ...args] = alone(script, disk);
    const full = await runCommand(program, { args: [...args, ...pull], env: { ...env, SVC_DATA: disk } });
    const message = `models cannot be kept in ${join(disk, 'models')} (ENOSPC: the disk is full); set SVC_DATA\n`;
    assert.deepEqual([full.code, full.stderr], [1, message]);
    hub.requests.length = 0;
    const [node = '', ...rest] = pull;
    const again = await runCommand(node, { args: rest, env: { ...env, SVC_DATA: temporaryFolder(t) } });
    assert.deepEqual([again.code, hub.resolved], [0, []]);
  });
});

test('a log on a disk that is full for a while says how many lines were lost when there is room', async (t) => {
  const disk = temporaryFolder(t);
  const [program, ...args] = alone(
    'disk=$1; shift; mount -t tmpfs -o size=64k none "$disk"; exec "$@" 2>>"$disk/log"',
    disk,
  );
  const url = `http://127.0.0.1:${await freePort()}`;
  const cwd = folderWithConfig(t, { listen: url.slice(7), allow_no_password: true, model: fixture('marker') });
  const child = spawn(program, [...args, ...SVC, 'serve'], { cwd, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  const get = async (path: string) => (await fetch(url + path)).text();
  while (!(await get('/readyz').then(Boolean, () => false))) await sleep(50);
  const lost = async () => Number(/^svc_log_lines_lost_total (\d+)$/m.exec(await get('/metrics'))?.[1]);
  while ((await lost()) === 0) await Promise.all(Array.from({ length: 200 }, () => get(`/${'p'.repeat(300)}`)));
  const inside = [...AS_ROOT, 'nsenter', '--target', String(child.pid), '--mount'];
  const run = (...command: string[]) => {
    const [name = '', ...rest] = [...inside, ...command];
    return execFileSync(name, rest, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  };
  run('mount', '-o', 'remount,size=8m', disk);
  let log = '';
  for (; !log.includes('works again'); log = run('cat', join(disk, 'log'))) await sleep(100);
  const told = log
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg.includes('works again'));
  assert.equal(told.length, 1);
  assert.ok(told[0].lost > 0);
  assert.equal(await get('/livez').then(Boolean), true);
});
