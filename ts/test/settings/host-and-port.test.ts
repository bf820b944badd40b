import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { WrongUsage } from '../../src/refusal.ts';
import { wantedValue } from '../../src/schemas/config.ts';
import { type ConfigSources, type Flags, loadConfig } from '../../src/settings/config.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';

/** Returns the listen address and its origin. */
function listen(sources: ConfigSources) {
  const { config, origins } = loadConfig({ env: {}, ...sources });
  assert.ok('host' in config.listen);
  const { host, port } = config.listen;
  return [host, port, origins.get('listen')];
}

suite('--host and --port', () => {
  test('each replace a part of the default address', (t) => {
    const cwd = temporaryFolder(t);
    assert.deepEqual(listen({ cwd, flags: { port: '8080' } }), ['127.0.0.1', 8080, '--port']);
    assert.deepEqual(listen({ cwd, flags: { host: '0.0.0.0' } }), ['0.0.0.0', 21118, '--host']);
    assert.deepEqual(listen({ cwd, flags: { host: '::1', port: '0' } }), ['::1', 0, '--host and --port']);
    assert.deepEqual(listen({ cwd, flags: { host: '[::1]' } }), ['::1', 21118, '--host']);
  });

  test('each replace a part of the address in svc.json', (t) => {
    const cwd = folderWithConfig(t, { listen: '10.0.0.1:80' });
    assert.deepEqual(listen({ cwd, flags: { port: '8080' } }), ['10.0.0.1', 8080, '--port']);
    assert.deepEqual(listen({ cwd, flags: { host: 'localhost' } }), ['localhost', 80, '--host']);
    assert.deepEqual(listen({ cwd }), ['10.0.0.1', 80, 'svc.json']);
  });

  test('together replace a socket, of which neither is a part', (t) => {
    const cwd = folderWithConfig(t, { listen: 'unix:/run/svc.sock' });
    assert.deepEqual(listen({ cwd, flags: { host: '::1', port: '80' } }), ['::1', 80, '--host and --port']);
    for (const [flags, message] of [
      [{ port: '80' }, '--port: the listen address is unix:/run/svc.sock; give --host as well'],
      [{ host: '::1' }, '--host: the listen address is unix:/run/svc.sock; give --port as well'],
    ] as const) {
      assert.throws(
        () => listen({ cwd, flags }),
        (error) => error instanceof WrongUsage && error.message === message,
      );
    }
  });

  for (const [flags, message] of [
    [{ port: '65536' }, '--port: must be a whole number from 0 to 65535'],
    [{ port: '' }, '--port: must be a whole number from 0 to 65535'],
    [{ port: ':80' }, '--port: must be a whole number from 0 to 65535'],
    [{ host: '' }, '--host: must be a host name or an IP address, such as 0.0.0.0 or ::1'],
    [{ host: 'a:80' }, '--host: must be a host name or an IP address, such as 0.0.0.0 or ::1'],
    [{ host: 'http://a' }, '--host: must be a host name or an IP address, such as 0.0.0.0 or ::1'],
    [{ listen: 'a:1', port: '2' }, '--port: --listen is the whole address; give one or the other'],
    [
      { listen: 'a:1', host: 'b', port: '2' },
      '--host and --port: --listen is the whole address; give one or the other',
    ],
    [{ listen: 'a' }, `--listen: must be ${wantedValue('listen')}`],
    [{ listen: '8080' }, `--listen: must be ${wantedValue('listen')}; a port alone is --port 8080`],
    [{ threads: 'x' }, '--threads: must be a whole number from 0 to 256'],
  ] as readonly (readonly [Flags, string])[]) {
    test(`${JSON.stringify(flags)} is wrong usage`, (t) => {
      assert.throws(
        () => loadConfig({ cwd: temporaryFolder(t), env: {}, flags }),
        (error) => error instanceof WrongUsage && error.message === message,
      );
    });
  }
});
