import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { formatAddress } from '../../src/network/address.ts';
import { Refusal } from '../../src/refusal.ts';
import { type Environment, loadConfig } from '../../src/settings/config.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';

const PASSWORD = 'twelve-chars';
const KEY = 'sixteen-chars-..';
const BOTH = { SVC_PASSWORD: PASSWORD, SVC_API_KEY: KEY };
const PUBLISHED = 'SVC_PASSWORD is the published default password, which counts as none: ';
const OWN_OR = 'must be set, or an svc.json of your own mounted at /data/svc.json';

/** Loads the configuration in the way of `svc serve` in the container. */
function serve(cwd: string, env: Environment = BOTH) {
  return loadConfig({ cwd, env: { ...env, SVC_CONTAINER: '1' }, create: true });
}

function address(t: TestContext, settings: unknown, env: Environment = BOTH): string {
  return formatAddress(serve(folderWithConfig(t, settings), env).config.listen);
}

suite('the address in the container', () => {
  test('is every address where nobody set one', (t) => {
    assert.deepEqual(serve(temporaryFolder(t)).config.listen, { host: '0.0.0.0', port: 21118 });
    assert.equal(address(t, {}), '0.0.0.0:21118');
  });

  test('is that of a svc.json of the user', (t) => {
    assert.equal(address(t, { listen: '127.0.0.1:21118' }), '127.0.0.1:21118');
    assert.equal(address(t, { listen: '0.0.0.0:80', generated: false }), '0.0.0.0:80');
  });

  test('is that of the flag, whatever the file says', (t) => {
    const cwd = folderWithConfig(t, { listen: '0.0.0.0:80' });
    const { config } = loadConfig({ cwd, env: { SVC_CONTAINER: '1' }, flags: { listen: '127.0.0.1:81' } });
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 81 });
  });

  test('is not that of a generated svc.json, which is told when somebody changed it', (t) => {
    assert.equal(address(t, { generated: true, listen: '127.0.0.1:21118' }), '0.0.0.0:21118');
    const changed = folderWithConfig(t, { generated: true, listen: '127.0.0.1:9', threads: 3 });
    const { config, warnings } = serve(changed);
    assert.equal(formatAddress(config.listen), '0.0.0.0:21118');
    assert.equal(config.threads, 3);
    assert.deepEqual(warnings, [
      'svc.json: listen is not taken from a generated file; remove "generated" to make the file yours',
    ]);
  });

  test('is in the file that is generated, so that a second start says the same', (t) => {
    const cwd = temporaryFolder(t);
    const { created } = serve(cwd);
    assert.equal(created, join(cwd, 'svc.json'));
    const written = JSON.parse(readFileSync(created, 'utf8')) as object;
    assert.deepEqual(written, { generated: true, listen: '0.0.0.0:21118', device: 'auto' });
    const second = serve(cwd);
    assert.deepEqual(second.warnings, []);
    assert.deepEqual(second.config.listen, { host: '0.0.0.0', port: 21118 });
  });

  test('is on loopback outside of the container, whatever else is set', (t) => {
    const { config } = loadConfig({ cwd: temporaryFolder(t), env: { ...BOTH, SVC_CONTAINER: '' } });
    assert.equal(formatAddress(config.listen), '127.0.0.1:21118');
  });
});

suite('the credentials in the container', () => {
  for (const [env, message] of [
    [{}, `SVC_PASSWORD and SVC_API_KEY ${OWN_OR}`],
    [{ SVC_PASSWORD: PASSWORD }, `SVC_API_KEY ${OWN_OR}`],
    [{ SVC_API_KEY: KEY }, `SVC_PASSWORD ${OWN_OR}`],
    [{ SVC_PASSWORD: '', SVC_API_KEY: '' }, `SVC_PASSWORD and SVC_API_KEY ${OWN_OR}`],
    [{ SVC_PASSWORD: '            ', SVC_API_KEY: KEY }, `SVC_PASSWORD ${OWN_OR}`],
    [{ SVC_PASSWORD: 'adminadmin', SVC_API_KEY: KEY }, `${PUBLISHED}SVC_PASSWORD ${OWN_OR}`],
    [{ SVC_PASSWORD: 'eleven-char', SVC_API_KEY: KEY }, 'SVC_PASSWORD must be at least 12 characters, it has 11'],
    [{ SVC_PASSWORD: 'eleven-char' }, 'SVC_PASSWORD must be at least 12 characters, it has 11'],
    [
      { SVC_ALLOW_NO_API_KEY: '1', SVC_PASSWORD: PASSWORD },
      `SVC_API_KEY ${OWN_OR}; without that file SVC_ALLOW_NO_API_KEY does not count in the container`,
    ],
    [
      { SVC_ALLOW_NO_API_KEY: '1', SVC_ALLOW_NO_PASSWORD: '1' },
      `SVC_PASSWORD and SVC_API_KEY ${OWN_OR}; ` +
        'without that file SVC_ALLOW_NO_PASSWORD and SVC_ALLOW_NO_API_KEY do not count in the container',
    ],
  ] as const) {
    test(`${JSON.stringify(env)} is refused, and no file is made`, (t) => {
      const cwd = temporaryFolder(t);
      assert.throws(() => serve(cwd, env), new Refusal(message));
      assert.ok(!existsSync(join(cwd, 'svc.json')));
      const generated = folderWithConfig(t, { generated: true, password: PASSWORD, api_key: KEY });
      assert.throws(() => serve(generated, env), new Refusal(message));
    });
  }

  test('both are enough', (t) => {
    const { config } = serve(temporaryFolder(t));
    assert.ok(config.password?.matches(PASSWORD));
    assert.ok(config.apiKey[0]?.matches(KEY));
  });

  test('a svc.json of the user is enough, whatever is in it but a short password', (t) => {
    const unchecked = { password: 'short', allow_no_password: true };
    for (const settings of [{}, { generated: false }, { allow_no_api_key: true }, { password: PASSWORD }, unchecked]) {
      assert.equal(serve(folderWithConfig(t, settings), {}).config.generated, false);
    }
    const short = new Refusal('svc.json: password must be at least 12 characters, it has 5');
    assert.throws(() => serve(folderWithConfig(t, { password: 'short' }), {}), short);
  });

  test('a password of the environment that is too short is refused beside a svc.json of the user as well', (t) => {
    const cwd = folderWithConfig(t, {});
    assert.throws(() => serve(cwd, { SVC_PASSWORD: 'short' }), /^Refusal: SVC_PASSWORD must be at least 12 characters/);
  });

  test('are not asked for by what does not serve', (t) => {
    const { config } = loadConfig({ cwd: temporaryFolder(t), env: { SVC_CONTAINER: '1' } });
    assert.equal(formatAddress(config.listen), '0.0.0.0:21118');
  });
});
