import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { inspect, promisify } from 'node:util';
import { createExclusively, removeAbandoned } from '../../src/files/exclusive-file.ts';
import { type ConfigSources, loadConfig } from '../../src/settings/config.ts';
import { announcement, resolveApiKeys, resolvePassword, Secret } from '../../src/settings/credentials.ts';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { folderWithConfig, makeUnwritable, temporaryFolder, withoutPrivilege } from '../temporary-folder.ts';

const KEY = 'a-key-of-at-least-sixteen';
const PUBLIC = { listen: '0.0.0.0:21118' };

function resolveIn(cwd: string, sources: ConfigSources = {}) {
  return resolveApiKeys(loadConfig({ cwd, env: {}, ...sources }).config);
}

/** Resolves the keys with `settings` in an `svc.json` of its own. */
function resolveWith(t: TestContext, settings: object, sources: ConfigSources = {}) {
  return resolveIn(folderWithConfig(t, settings), sources);
}

function revealed({ secrets }: { readonly secrets: readonly Secret[] }): string[] {
  return secrets.map((secret) => secret.reveal());
}

suite('a secret', () => {
  const secret = new Secret(KEY, 'svc.json');

  test('prints as [secret] in text, JSON, logs and joins', () => {
    assert.equal(String(secret), '[secret]');
    assert.equal(`${secret}`, '[secret]');
    assert.equal([secret].join(), '[secret]');
    assert.equal(JSON.stringify({ secret }), '{"secret":"[secret]"}');
    assert.equal(inspect(secret), '[secret]');
    assert.ok(!inspect({ secret }, { showHidden: true, depth: 9 }).includes(KEY));
    assert.ok(!JSON.stringify(Object.getOwnPropertyDescriptors(secret)).includes(KEY));
  });

  test('matches itself alone, as text and as bytes', () => {
    assert.ok(secret.matches(KEY));
    assert.ok(secret.matches(Buffer.from(KEY)));
    for (const other of ['', KEY.slice(1), `${KEY}x`, KEY.toUpperCase(), ` ${KEY}`]) assert.ok(!secret.matches(other));
  });

  test('has a fingerprint: the start of its sha256', () => {
    assert.equal(new Secret('abc', 'x').fingerprint(), 'ba7816bf8f01');
  });

  test('counts its characters as people do', () => {
    assert.equal(new Secret('schlüssel-🔑', 'x').length, 11);
  });
});

suite('whether the key is checked', () => {
  const expectations: readonly [listen: string, isLoopback: boolean][] = [
    ['127.0.0.1:0', true],
    ['127.8.8.8:0', true],
    ['[::1]:0', true],
    ['localhost:0', true],
    ['0.0.0.0:0', false],
    ['[::]:0', false],
    ['192.168.1.1:0', false],
    ['example.com:0', false],
    [':0', false],
  ];
  for (const [listen, isLoopback] of expectations) {
    for (const isSet of [false, true]) {
      for (const allowed of [undefined, '0', '1']) {
        const isOn = allowed !== '1' && (isSet || !isLoopback);
        const state = `key ${isSet ? 'set' : 'not set'}, SVC_ALLOW_NO_API_KEY ${allowed ?? 'unset'}`;
        test(`${listen}, ${state}: ${isOn ? 'required' : 'off'}`, (t) => {
          const env = { SVC_API_KEY: isSet ? KEY : undefined, SVC_ALLOW_NO_API_KEY: allowed };
          const credential = resolveWith(t, { listen }, { env });
          assert.equal(credential.secrets.length, isOn ? 1 : 0);
          assert.match(credential.status, isOn ? /^API key required: / : /^API key off: /);
          assert.equal(credential.generated !== undefined, isOn && !isSet);
        });
      }
    }
  }

  test('the log says why it is off', (t) => {
    assert.equal(resolveWith(t, {}).status, 'API key off: 127.0.0.1 is loopback and no key is set');
    const { status } = resolveWith(t, { ...PUBLIC, allow_no_api_key: true });
    assert.equal(status, 'API key off: allow_no_api_key is on');
  });

  test('allow_no_api_key wins over a set key, with one warning, and makes no file', (t) => {
    const cwd = folderWithConfig(t, { ...PUBLIC, allow_no_api_key: true, api_key: [KEY, KEY] });
    const { secrets, warnings } = resolveIn(cwd);
    assert.deepEqual(secrets, []);
    assert.deepEqual(warnings, ['the api key from svc.json is not checked: allow_no_api_key is on']);
    assert.deepEqual(readdirSync(cwd), ['svc.json']);
  });

  test('on loopback a generated file of another time is not a key that is set', (t) => {
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 'svc.api-key'), `${KEY}\n`, { mode: 0o600 });
    assert.deepEqual(resolveIn(cwd).secrets, []);
  });
});

suite('keys that are set', () => {
  test('the environment wins over svc.json', (t) => {
    const credential = resolveWith(t, { api_key: 'short' }, { env: { SVC_API_KEY: KEY } });
    assert.deepEqual(revealed(credential), [KEY]);
    assert.equal(credential.status, 'API key required: set in SVC_API_KEY');
  });

  test('a list holds the old key and the new', (t) => {
    const credential = resolveWith(t, { api_key: [KEY, `${KEY}-new`] });
    assert.deepEqual(revealed(credential), [KEY, `${KEY}-new`]);
    assert.equal(credential.status, 'API key required: set in svc.json');
  });

  test('a set key wins over a generated file', (t) => {
    const cwd = folderWithConfig(t, { ...PUBLIC, api_key: KEY });
    writeFileSync(join(cwd, 'svc.api-key'), 'another-key-of-some-length', { mode: 0o600 });
    assert.deepEqual(revealed(resolveIn(cwd)), [KEY]);
  });

  for (const length of [1, 15, 16]) {
    test(`${length} characters ${length < 16 ? 'are too few, wherever they are set' : 'are enough'}`, (t) => {
      const value = 'k'.repeat(length);
      const attempts: readonly [origin: string, run: () => unknown][] = [
        ['svc.json', () => resolveWith(t, { api_key: value })],
        ['svc.json', () => resolveWith(t, { api_key: [KEY, value] })],
        ['SVC_API_KEY', () => resolveWith(t, PUBLIC, { env: { SVC_API_KEY: value } })],
      ];
      for (const [origin, run] of attempts) {
        if (length >= 16) assert.doesNotThrow(run);
        else assert.throws(run, { message: `api key from ${origin} is ${length} characters; use at least 16` });
      }
    });
  }

  test('an empty one in a list is too short', (t) => {
    const message = 'api key from svc.json is 0 characters; use at least 16';
    assert.throws(() => resolveWith(t, { api_key: [KEY, ''] }), { message });
  });

  for (const value of [`${KEY} two`, `${KEY}\nx`, `${KEY}-ü`]) {
    test(`one that no Bearer header carries refuses: ${JSON.stringify(value)}`, (t) => {
      const message = 'api key from svc.json has a space or a character that is not ASCII; no Bearer header carries it';
      assert.throws(() => resolveWith(t, { api_key: value }), { message });
    });
  }
});

suite('the generated file', () => {
  test('is made beside svc.json, for its owner alone, and used by every later start', (t) => {
    const folder = folderWithConfig(t, PUBLIC);
    const cwd = temporaryFolder(t);
    const sources = { flags: { config: join(folder, 'svc.json') }, env: { SVC_DATA: temporaryFolder(t) } };
    const first = resolveIn(cwd, sources);
    const path = join(folder, 'svc.api-key');
    assert.equal(first.generated?.file, path);
    assert.deepEqual(revealed(first), [readFileSync(path, 'utf8').trim()]);
    assert.match(first.secrets[0]?.reveal() ?? '', /^[0-9a-f]{48}$/);
    assert.deepEqual(first.warnings, []);
    if (process.platform !== 'win32') assert.equal(statSync(path).mode & 0o777, 0o600);
    const second = resolveIn(cwd, sources);
    assert.equal(second.generated, undefined);
    assert.deepEqual(revealed(second), revealed(first));
    assert.equal(second.status, `API key required: kept in ${path}, sha256 ${first.secrets[0]?.fingerprint()}`);
    assert.deepEqual(readdirSync(folder).sort(), ['svc.api-key', 'svc.json']);
  });

  test('two starts make two different keys', (t) => {
    assert.notDeepEqual(revealed(resolveWith(t, PUBLIC)), revealed(resolveWith(t, PUBLIC)));
  });

  for (const [place, unwritable] of [
    ['beside', []],
    ['data', ['beside']],
    ['work', ['beside', 'data']],
  ] as const) {
    test(`goes to ${place} when these cannot be written: ${unwritable.join(', ') || 'none'}`, (t) => {
      const root = temporaryFolder(t);
      for (const name of ['beside', 'data', 'work']) {
        mkdirSync(join(root, name));
        chmodSync(join(root, name), 0o777);
      }
      writeFileSync(join(root, 'beside', 'svc.json'), JSON.stringify(PUBLIC));
      for (const name of unwritable) makeUnwritable(join(root, name));
      const flags = { config: join(root, 'beside', 'svc.json') };
      const sources = { flags, env: { SVC_DATA: join(root, 'data') } };
      const { generated } = withoutPrivilege(() => resolveIn(join(root, 'work'), sources));
      assert.equal(generated?.file, join(root, place, 'svc.api-key'));
    });
  }

  for (const place of ['data', 'work'] as const) {
    test(`in ${place} is not looked at where one can be kept beside svc.json`, (t) => {
      const [folder, data, work] = [folderWithConfig(t, PUBLIC), temporaryFolder(t), temporaryFolder(t)];
      writeFileSync(join(place === 'data' ? data : work, 'svc.api-key'), `${KEY}\n`, { mode: 0o600 });
      const sources = { flags: { config: join(folder, 'svc.json') }, env: { SVC_DATA: data } };
      const credential = resolveIn(work, sources);
      assert.notDeepEqual(revealed(credential), [KEY]);
      assert.equal(credential.secrets[0]?.origin, join(folder, 'svc.api-key'));
    });

    test(`in ${place} is read where none can be kept before it`, (t) => {
      const [folder, data, work] = [folderWithConfig(t, PUBLIC), temporaryFolder(t), temporaryFolder(t)];
      const path = join(place === 'data' ? data : work, 'svc.api-key');
      writeFileSync(path, `${KEY}\n`);
      chmodSync(path, 0o644);
      for (const unwritable of place === 'data' ? [folder] : [folder, data]) makeUnwritable(unwritable);
      const sources = { flags: { config: join(folder, 'svc.json') }, env: { SVC_DATA: data } };
      const credential = withoutPrivilege(() => resolveIn(work, sources));
      assert.deepEqual(revealed(credential), [KEY]);
      assert.equal(credential.secrets[0]?.origin, path);
    });
  }

  test('the first of the three that is there counts', (t) => {
    const [folder, work] = [folderWithConfig(t, PUBLIC), temporaryFolder(t)];
    writeFileSync(join(folder, 'svc.api-key'), KEY, { mode: 0o600 });
    writeFileSync(join(work, 'svc.api-key'), `${KEY}-of-work`, { mode: 0o600 });
    assert.deepEqual(revealed(resolveIn(work, { flags: { config: join(folder, 'svc.json') } })), [KEY]);
  });

  test('that cannot be written anywhere refuses to start, and says what to do', (t) => {
    const cwd = temporaryFolder(t);
    makeUnwritable(cwd);
    const message = `svc.api-key: cannot be written to ${cwd} (EACCES); set SVC_API_KEY, or SVC_DATA to a writable folder`;
    const flags = { listen: '0.0.0.0:0' };
    withoutPrivilege(() => assert.throws(() => resolveIn(cwd, { flags }), { name: 'Refusal', message }));
  });

  test('that is empty or too short refuses to start and is left as it is', (t) => {
    for (const [text, length] of [
      ['', 0],
      [' \n', 0],
      ['fifteen-letters\n', 15],
    ] as const) {
      const cwd = folderWithConfig(t, PUBLIC);
      const path = join(cwd, 'svc.api-key');
      writeFileSync(path, text, { mode: 0o600 });
      const message = `api key from ${path} is ${length} characters; use at least 16`;
      assert.throws(() => resolveIn(cwd), { name: 'Refusal', message });
      assert.equal(readFileSync(path, 'utf8'), text);
    }
  });

  test('that is no file refuses to start: another one would shut out those who have its key', (t) => {
    const cwd = folderWithConfig(t, PUBLIC);
    mkdirSync(join(cwd, 'svc.api-key'));
    const message = process.platform === 'win32' ? /cannot be read/ : /svc\.api-key: is not a regular file$/;
    assert.throws(() => resolveIn(cwd), message);
  });

  test('that is too long refuses to start', (t) => {
    const cwd = folderWithConfig(t, PUBLIC);
    const path = join(cwd, 'svc.api-key');
    writeFileSync(path, 'k'.repeat(4096), { mode: 0o600 });
    assert.equal(resolveIn(cwd).secrets[0]?.length, 4096);
    writeFileSync(path, 'k'.repeat(4097), { mode: 0o600 });
    assert.throws(() => resolveIn(cwd), { name: 'Refusal', message: `${path}: is longer than 4096 bytes` });
  });

  test('is read through a link beside svc.json and in SVC_DATA, as mounted secrets are', (t) => {
    const [mounted, folder, data] = [temporaryFolder(t), folderWithConfig(t, PUBLIC), temporaryFolder(t)];
    writeFileSync(join(mounted, 'key'), `${KEY}\n`);
    chmodSync(join(mounted, 'key'), 0o644);
    for (const place of [data, folder]) symlinkSync(join(mounted, 'key'), join(place, 'svc.api-key'));
    assert.deepEqual(revealed(resolveIn(folder)), [KEY]);
    rmSync(join(folder, 'svc.api-key'));
    makeUnwritable(folder);
    const sources = { flags: { config: join(folder, 'svc.json') }, env: { SVC_DATA: data } };
    assert.deepEqual(revealed(withoutPrivilege(() => resolveIn(temporaryFolder(t), sources))), [KEY]);
  });

  test('is not read through a link in the working folder', (t) => {
    const [folder, work] = [folderWithConfig(t, PUBLIC), temporaryFolder(t)];
    writeFileSync(join(folder, 'other'), KEY, { mode: 0o600 });
    symlinkSync(join(folder, 'other'), join(work, 'svc.api-key'));
    makeUnwritable(folder);
    const flags = { config: join(folder, 'svc.json') };
    const message = `${join(work, 'svc.api-key')}: is a link, and none is followed in the working folder; remove it`;
    withoutPrivilege(() => assert.throws(() => resolveIn(work, { flags }), { name: 'Refusal', message }));
  });

  test('is not made elsewhere because a link to nothing has its name', (t) => {
    const [folder, work] = [folderWithConfig(t, PUBLIC), temporaryFolder(t)];
    const path = join(folder, 'svc.api-key');
    symlinkSync(join(folder, 'nothing'), path);
    const flags = { config: join(folder, 'svc.json') };
    assert.throws(() => resolveIn(work, { flags }), { message: `${path}: is a link to nothing; remove it` });
    assert.deepEqual(readdirSync(work), []);
  });

  // Only root can give a file to another user.
  if (process.geteuid?.() === 0) {
    test('of another user refuses to start: who can write it decides who gets in', (t) => {
      const cwd = folderWithConfig(t, PUBLIC);
      const path = join(cwd, 'svc.api-key');
      writeFileSync(path, KEY, { mode: 0o600 });
      chownSync(path, 65_534, 0);
      const message = `${path}: belongs to user 65534, neither to the user of the server (0) nor to root`;
      assert.throws(() => resolveIn(cwd), { name: 'Refusal', message });
      chownSync(path, 0, 0);
      chmodSync(path, 0o644);
      assert.deepEqual(revealed(withoutPrivilege(() => resolveIn(cwd))), [KEY], 'of root');
    });
  }

  if (process.platform !== 'win32') {
    for (const [what, make] of [
      ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
      ['a link to a device without end', (path: string) => symlinkSync('/dev/zero', path)],
    ] as const) {
      test(`that is ${what} refuses to start, and does not hang`, (t) => {
        const cwd = folderWithConfig(t, PUBLIC);
        make(join(cwd, 'svc.api-key'));
        const message = `${join(cwd, 'svc.api-key')}: is not a regular file`;
        assert.throws(() => resolveIn(cwd), { name: 'Refusal', message });
      });
    }
  }

  test('that others have access to is a warning', (t) => {
    for (const mode of [0o600, 0o400, 0o640, 0o604, 0o644]) {
      const cwd = folderWithConfig(t, PUBLIC);
      const path = join(cwd, 'svc.api-key');
      writeFileSync(path, KEY);
      chmodSync(path, mode);
      const isWarned = process.platform !== 'win32' && mode > 0o600;
      const warning = `${path}: others than its owner have access to it; run chmod 600`;
      assert.deepEqual(resolveIn(cwd).warnings, isWarned ? [warning] : []);
    }
  });

  test('is never overwritten by the one that comes second', (t) => {
    const path = join(temporaryFolder(t), 'file');
    assert.equal(createExclusively({ path, text: 'first', mode: 0o600 }), true);
    assert.equal(createExclusively({ path, text: 'second', mode: 0o600 }), false);
    assert.equal(readFileSync(path, 'utf8'), 'first');
  });

  if (process.platform !== 'win32') {
    test('that cannot be written whole is not there, and its start says why', async (t) => {
      const cwd = temporaryFolder(t);
      const limited = ['-c', 'ulimit -f 0 && exec "$@"', 'sh', process.execPath];
      const svc = join(REPOSITORY, 'bin', 'svc.js');
      const args = [...limited, svc, 'serve', '--listen', '127.0.0.1:0'];
      const { code, stderr } = await runCommand('sh', { args, cwd, env: { SVC_DATA: '' } });
      const last = stderr.trim().split('\n').at(-1);
      assert.equal(
        last,
        `svc.password: cannot be written to ${cwd} (EFBIG); set SVC_PASSWORD, or SVC_DATA to a writable folder`,
      );
      assert.equal(code, 1);
      assert.deepEqual(readdirSync(cwd), []);
      const doctor = await runCommand('sh', { args: [...limited, svc, 'doctor'], cwd, env: { SVC_DATA: '' } });
      assert.match(doctor.stdout, /svc\.password: cannot be written to .* \(EFBIG\)/);
      assert.deepEqual(readdirSync(cwd), []);
    });
  }
});

test('temporary files that a killed process left are removed by a later start, and no others', (t) => {
  const folder = temporaryFolder(t);
  const [old, young, others] = ['.svc-0123456789ab.tmp', '.svc-ba9876543210.tmp', '.svc-mine.tmp'];
  for (const name of [old, young, others]) writeFileSync(join(folder, name), '');
  mkdirSync(join(folder, '.svc-00000000000a.tmp'));
  const hourAgo = Date.now() / 1000 - 3600;
  for (const name of [old, others, '.svc-00000000000a.tmp']) utimesSync(join(folder, name), hourAgo, hourAgo);
  removeAbandoned(folder);
  assert.deepEqual(readdirSync(folder).sort(), ['.svc-00000000000a.tmp', young, others].sort());
  removeAbandoned(join(folder, 'nothing'));
});

test('of starts at the same moment one makes the key, and all have it', async (t) => {
  const folders = Array.from({ length: 40 }, () => folderWithConfig(t, PUBLIC));
  const module = (name: string) => JSON.stringify(new URL(`../../src/settings/${name}.js`, import.meta.url).href);
  // Each folder has a moment that is the same in every process; each start waits for the moment of its folder.
  const program = `
    import { loadConfig } from ${module('config')};
    import { resolveApiKeys } from ${module('credentials')};
    const [firstMs, ...folders] = process.argv.slice(1);
    const starts = folders.map((cwd, index) => {
      while (Date.now() < Number(firstMs) + index * 5);
      const { secrets, generated } = resolveApiKeys(loadConfig({ cwd, env: {} }).config);
      return { key: secrets[0].reveal(), isMade: generated !== undefined };
    });
    console.log(JSON.stringify(starts));`;
  const run = promisify(execFile);
  const args = ['--input-type=module', '-e', program, String(Date.now() + 1000), ...folders];
  const processes = await Promise.all(Array.from({ length: 3 }, () => run(process.execPath, args)));
  const starts = processes.map(({ stdout }) => JSON.parse(stdout) as { key: string; isMade: boolean }[]);
  for (const [index, folder] of folders.entries()) {
    const here = starts.map((all) => all[index] ?? assert.fail());
    const key = readFileSync(join(folder, 'svc.api-key'), 'utf8').trim();
    assert.deepEqual(new Set(here.map((start) => start.key)), new Set([key]));
    assert.equal(here.filter(({ isMade }) => isMade).length, 1);
  }
});

suite('what a start says of the credential it generated', () => {
  test('on a terminal: the value, once', (t) => {
    const cwd = folderWithConfig(t, PUBLIC);
    const { generated, status } = resolveIn(cwd);
    assert.ok(generated);
    const line = announcement(generated, true);
    assert.equal(line, `API key, shown only now: ${generated.secret.reveal()} (kept in ${join(cwd, 'svc.api-key')})`);
    assert.ok(!status.includes(generated.secret.reveal()));
  });

  test('in a log: the file and a fingerprint, never the value', (t) => {
    const cwd = folderWithConfig(t, PUBLIC);
    const { generated } = resolveIn(cwd);
    assert.ok(generated);
    const line = announcement(generated, false);
    const fingerprint = generated.secret.fingerprint();
    assert.equal(line, `API key generated: ${join(cwd, 'svc.api-key')}, sha256 ${fingerprint}`);
    assert.ok(!line.includes(generated.secret.reveal()));
  });
});

suite('the dashboard password', () => {
  const passwordIn = (cwd: string, sources: ConfigSources = {}) =>
    resolvePassword(loadConfig({ cwd, env: {}, ...sources }).config);

  test('is the one that is set, of any length where only this machine can connect', (t) => {
    const credential = passwordIn(folderWithConfig(t, { password: 'über 1' }));
    assert.deepEqual(revealed(credential), ['über 1']);
    assert.equal(credential.status, 'Dashboard password required: set in svc.json');
  });

  for (const [where, settings, env] of [
    ['beyond loopback', PUBLIC, {}],
    ['in the container, whatever the address', {}, { SVC_CONTAINER: '1' }],
  ] as const) {
    test(`has 12 characters ${where}, wherever it is from`, (t) => {
      const refused = (length: number, origin: string) => ({
        name: 'Refusal',
        message: `dashboard password from ${origin} is ${length} characters; use at least 12 where other machines can connect`,
      });
      const inFile = folderWithConfig(t, { listen: '127.0.0.1:0', ...settings, password: 'éleven-char' });
      assert.throws(() => passwordIn(inFile, { env }), refused(11, 'svc.json'));
      const cwd = folderWithConfig(t, { listen: '127.0.0.1:0', ...settings });
      const set = (password: string) => passwordIn(cwd, { env: { ...env, SVC_PASSWORD: password } });
      assert.throws(() => set('short'), refused(5, 'SVC_PASSWORD'));
      assert.deepEqual(revealed(set('twelve-chars')), ['twelve-chars']);
      const path = join(cwd, 'svc.password');
      writeFileSync(path, 'kept\n', { mode: 0o600 });
      assert.throws(() => passwordIn(cwd, { env }), refused(4, path));
      rmSync(path);
      assert.equal(passwordIn(cwd, { env }).secrets[0]?.length, 48);
    });
  }

  for (const value of ['a line feed at the end\n', 'a carriage return\r\n', 'a\0byte', 'a\u2028separator']) {
    test(`that Basic auth cannot carry refuses: ${JSON.stringify(value)}`, (t) => {
      const message =
        'dashboard password from SVC_PASSWORD has a line break or another control character; Basic auth does not carry it';
      assert.throws(() => passwordIn(temporaryFolder(t), { env: { SVC_PASSWORD: value } }), { message });
    });
  }

  test('is generated when unset, on loopback too, and kept', (t) => {
    const cwd = temporaryFolder(t);
    const first = passwordIn(cwd);
    assert.equal(first.generated?.file, join(cwd, 'svc.password'));
    assert.deepEqual(revealed(passwordIn(cwd)), revealed(first));
  });

  test('is generated when it is the published default', (t) => {
    const credential = passwordIn(folderWithConfig(t, { password: 'adminadmin' }));
    assert.ok(credential.generated);
    assert.ok(!credential.secrets[0]?.matches('adminadmin'));
  });

  test('is not taken from a file that holds the published default', (t) => {
    const cwd = temporaryFolder(t);
    const path = join(cwd, 'svc.password');
    writeFileSync(path, 'adminadmin\n', { mode: 0o600 });
    const message = `${path}: holds the published default password; delete the file to get a new one`;
    assert.throws(() => passwordIn(cwd), { message });
  });

  test('is off with allow_no_password', (t) => {
    const cwd = folderWithConfig(t, { password: 'some password' });
    const { secrets, status } = passwordIn(cwd, { env: { SVC_ALLOW_NO_PASSWORD: '1' } });
    assert.deepEqual(secrets, []);
    assert.equal(status, 'Dashboard password off: allow_no_password is on');
  });
});
