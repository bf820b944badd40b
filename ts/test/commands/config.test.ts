import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { type ConfigKey, ConfigSchema } from '../../src/schemas/config.ts';
import { runSvc } from '../svc-process.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';

const KEY = 'a-key-of-at-least-sixteen';

interface Printed {
  readonly file: string | null;
  readonly settings: Readonly<Record<ConfigKey, { readonly value: unknown; readonly origin: string }>>;
}

suite('svc config', { concurrency: 2 }, () => {
  test('prints every setting with the source that it came from', async (t) => {
    const cwd = folderWithConfig(t, { threads: 1, max_queue: 7, device: 'cpu', cors_origins: ['https://a.example'] });
    const env = { SVC_THREADS: '2', SVC_MAX_TOKENS: '99', SVC_DRAIN_MS: '' };
    const { code, stdout } = await runSvc(t, ['config', '--json', '--threads', '3', '--listen', ':1'], { cwd, env });
    const { file, settings } = JSON.parse(stdout) as Printed;
    assert.equal(code, 0);
    assert.equal(file, join(cwd, 'svc.json'));
    assert.deepEqual(Object.keys(settings), Object.keys(ConfigSchema.properties));
    assert.deepEqual(settings.threads, { value: 3, origin: '--threads' });
    assert.deepEqual(settings.listen, { value: '0.0.0.0:1', origin: '--listen' });
    assert.deepEqual(settings.max_tokens, { value: 99, origin: 'SVC_MAX_TOKENS' });
    assert.deepEqual(settings.max_queue, { value: 7, origin: 'svc.json' });
    assert.deepEqual(settings.cors_origins, { value: ['https://a.example'], origin: 'svc.json' });
    assert.deepEqual(settings.drain_ms, { value: 15_000, origin: 'default' });
    assert.deepEqual(settings.api_key, { value: [], origin: 'default' });
    assert.deepEqual(settings.password, { value: null, origin: 'default' });
  });

  test('prints the same as lines', async (t) => {
    const cwd = folderWithConfig(t, { threads: 1 });
    const { stdout } = await runSvc(t, ['config'], { cwd, env: { SVC_MAX_QUEUE: '7' } });
    assert.ok(stdout.startsWith(`settings: ${join(cwd, 'svc.json')}\n\n`));
    assert.match(stdout, /^threads +1 +svc\.json$/m);
    assert.match(stdout, /^max_queue +7 +SVC_MAX_QUEUE$/m);
    assert.match(stdout, /^listen +127\.0\.0\.1:21118 +default$/m);
    assert.match(stdout, /^password +- +default$/m);
  });

  test('never prints a secret, nor the user or the query of a URL', async (t) => {
    const cwd = folderWithConfig(t, {
      api_key: [KEY, `${KEY}-2`],
      model: 'https://me:hidden@a.example/m?token=hidden',
    });
    for (const args of [['config'], ['config', '--json']]) {
      const { stdout, stderr } = await runSvc(t, args, { cwd, env: { SVC_PASSWORD: 'hidden-password' } });
      assert.doesNotMatch(stdout + stderr, /hidden|sixteen/);
      assert.match(stdout, /\[secret\][", \n]+\[secret\]/);
      assert.match(stdout, /https:\/\/a\.example\/m["\s]/);
    }
  });

  test('makes no file, and tells warnings on stderr', async (t) => {
    const cwd = temporaryFolder(t);
    await runSvc(t, ['config'], { cwd });
    assert.deepEqual(readdirSync(cwd), []);
    const { stderr, code } = await runSvc(t, ['config'], { cwd: folderWithConfig(t, { theads: 1 }) });
    assert.equal(stderr, 'svc.json: unknown key "theads"; is threads meant?\n');
    assert.equal(code, 0);
  });

  test('refuses a wrong value as the server does', async (t) => {
    const { stderr, stdout, code } = await runSvc(t, ['config'], { cwd: folderWithConfig(t, { threads: 'x' }) });
    assert.equal(stderr, 'svc.json: threads: must be a whole number from 0 to 256\n');
    assert.equal(stdout, '');
    assert.equal(code, 1);
  });

  for (const [settings, env, line] of [
    [{ api_key: 'short' }, {}, 'api key from svc.json is 5 characters; use at least 16'],
    [
      { listen: ':1' },
      { SVC_PASSWORD: 'short' },
      'dashboard password from SVC_PASSWORD is 5 characters; use at least 12 where other machines can connect',
    ],
    [
      { generated: true },
      { SVC_CONTAINER: '1' },
      'SVC_PASSWORD and SVC_API_KEY must be set, or an svc.json of your own mounted at /data/svc.json',
    ],
  ] as const) {
    test(`ends as the server would, after the settings: ${line}`, async (t) => {
      const cwd = folderWithConfig(t, settings);
      const printed = await runSvc(t, ['config'], { cwd, env });
      assert.deepEqual([printed.code, printed.stderr], [1, `${line}\n`]);
      assert.match(printed.stdout, /^listen +\S+:\d+ /m);
      assert.deepEqual(readdirSync(cwd), ['svc.json']);
      const served = await runSvc(t, ['serve', '--listen', '192.0.2.1:0'], { cwd, env });
      assert.equal(served.code, 1);
      assert.equal(served.stderr.trimEnd().split('\n').at(-1), line);
    });
  }

  test('tells a PORT that has no effect', async (t) => {
    const { code, stderr } = await runSvc(t, ['config'], { cwd: temporaryFolder(t), env: { PORT: '8080' } });
    const line = 'PORT has no effect: to listen on port 8080, set listen in svc.json, or give --port 8080\n';
    assert.deepEqual([code, stderr], [0, line]);
  });

  test('says where the address of the container image came from', async (t) => {
    const env = { SVC_CONTAINER: '1' };
    const { stdout } = await runSvc(t, ['config'], { cwd: temporaryFolder(t), env });
    assert.match(stdout, /^listen +0\.0\.0\.0:21118 +container image$/m);
  });
});
