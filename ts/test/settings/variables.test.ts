import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type ConfigKey, ConfigSchema } from '../../src/schemas/config.ts';
import { loadConfig } from '../../src/settings/config.ts';
import { unknownVariables, unusedPort, variableOf } from '../../src/settings/variables.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

suite('a variable that means nothing', () => {
  for (const [name, message] of [
    ['SVC_LISTEN', 'SVC_LISTEN has no effect: set listen in svc.json, or give --listen HOST:PORT'],
    ['SVC_DEVICE', 'SVC_DEVICE has no effect: set device in svc.json, or give --device NAME'],
    ['SVC_GENERATED', 'SVC_GENERATED has no effect: it is a mark of the server in the svc.json that it makes'],
    ['SVC_THREDS', 'SVC_THREDS has no effect: there is no such variable; is SVC_THREADS meant?'],
    ['SVC_APIKEY', 'SVC_APIKEY has no effect: there is no such variable; is SVC_API_KEY meant?'],
    ['SVC_DTA', 'SVC_DTA has no effect: there is no such variable; is SVC_DATA meant?'],
    ['SVC_PORT', 'SVC_PORT has no effect: set listen in svc.json, or give --port PORT'],
    ['SVC_HOST', 'SVC_HOST has no effect: set listen in svc.json, or give --host HOST'],
    ['SVC_SOMETHING_ELSE', 'SVC_SOMETHING_ELSE has no effect: there is no such variable'],
  ] as const) {
    test(`is told: ${name}`, (t) => {
      assert.deepEqual(unknownVariables({ [name]: '8080' }), [message]);
      assert.deepEqual(loadConfig({ cwd: temporaryFolder(t), env: { [name]: '8080' } }).warnings, [message]);
    });
  }

  test('is not told when it is empty, which counts as unset, or another program’s', () => {
    assert.deepEqual(unknownVariables({ SVC_LISTEN: '', SVC_NONE: undefined, PATH: '/bin', svc_threads: '1' }), []);
  });

  test('is not told of what Kubernetes sets for a service of that name', () => {
    const ofService = {
      SVC_SERVICE_HOST: '10.0.0.1',
      SVC_SERVICE_PORT: '80',
      SVC_SERVICE_PORT_HTTP: '80',
      SVC_PORT: 'tcp://10.0.0.1:80',
      SVC_PORT_80_TCP: 'tcp://10.0.0.1:80',
      SVC_PORT_80_TCP_ADDR: '10.0.0.1',
      SVC_OTHER_SERVICE_HOST: '10.0.0.2',
      SVC_OTHER_PORT: 'tcp://10.0.0.2:80',
    };
    assert.deepEqual(unknownVariables(ofService), []);
  });
});

suite('PORT', () => {
  test('is told when the server listens on another port', (t) => {
    const advice = 'PORT has no effect: to listen on port 8080, set listen in svc.json, or give --port 8080';
    const own = { host: '127.0.0.1', port: 21118 };
    assert.equal(unusedPort({ PORT: '8080' }, own), advice);
    assert.equal(unusedPort({ PORT: '8080' }, { socket: '/run/svc.sock', mode: 0o600 }), advice);
    const sources = { cwd: temporaryFolder(t), env: { PORT: '8080' } };
    assert.deepEqual(loadConfig({ ...sources, listens: true }).warnings, [advice]);
    // A command that listens nowhere has no use for it.
    assert.deepEqual(loadConfig(sources).warnings, []);
  });

  test('is not told when it is the port, or no port at all', (t) => {
    for (const PORT of ['', '0', 'tcp://10.0.0.1:80', '123456']) {
      assert.equal(unusedPort({ PORT }, { host: '127.0.0.1', port: 1 }), undefined);
    }
    const sources = { cwd: temporaryFolder(t), env: { PORT: '8080' }, listens: true };
    assert.deepEqual(loadConfig({ ...sources, flags: { port: '8080' } }).warnings, []);
  });
});

test('every key has a variable but those that say what to use instead', () => {
  const keys = Object.keys(ConfigSchema.properties) as ConfigKey[];
  const without = keys.filter((key) => variableOf(key) === undefined);
  assert.deepEqual(without, ['generated', 'listen', 'device']);
  for (const key of keys) {
    const name = variableOf(key);
    if (name !== undefined) assert.deepEqual(unknownVariables({ [name]: '1' }), []);
  }
});

test('every variable that the project names anywhere is a known one', () => {
  const folders = ['ts/src', 'bin', 'scripts', 'deploy', 'docs', 'examples', 'npm', 'crates/engine/src'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter(
        (entry) =>
          entry.isFile() && /\.(ts|m?js|sh|ps1|ya?ml|cfg|md|rs|service|json|py|tpl|txt|plist)$/.test(entry.name),
      )
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const texts = [...files, ...['Dockerfile', 'README.md', 'SECURITY.md'].map((name) => join(ROOT, name))];
  const unknown = texts.flatMap((file) => {
    const names = readFileSync(file, 'utf8').match(/\bSVC_[A-Z][A-Z0-9_]*[A-Z0-9]\b/g) ?? [];
    return names
      .filter((name) => unknownVariables({ [name]: '1' }).length > 0)
      .map((name) => `${file.slice(ROOT.length)}: ${name}`);
  });
  assert.ok(texts.length > 100);
  assert.deepEqual([...new Set(unknown)], []);
});
