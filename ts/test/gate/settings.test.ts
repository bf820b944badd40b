import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { type GateFlags, gateSettings } from '../../src/gate/settings.ts';
import { Refusal } from '../../src/refusal.ts';
import { type Environment, loadConfig } from '../../src/settings/config.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const KEY = 'sixteen-chars-..';

function settings(t: TestContext, flags: GateFlags = {}, env: Environment = {}) {
  const all = { GATE_API_KEY: KEY, ...env };
  return gateSettings(flags, all, loadConfig({ env: {}, cwd: temporaryFolder(t) }).config);
}

suite('the settings of the gate', () => {
  test('have defaults: the address of the server, and the server one port above', (t) => {
    const { listen, upstream, timeouts, credential } = settings(t);
    assert.deepEqual(listen, { host: '127.0.0.1', port: 21118 });
    assert.equal(upstream.origin, 'http://127.0.0.1:21119');
    assert.deepEqual(timeouts, { connectMs: 5000, silenceMs: 130_000, batchMs: 3_600_000 });
    assert.ok(credential.secrets[0]?.matches(KEY));
    assert.equal(credential.status, 'API key required: set in GATE_API_KEY');
  });

  test('come from variables, of which empty ones are unset, and from flags, which win', (t) => {
    const env = {
      GATE_LISTEN: ':80',
      GATE_UPSTREAM: 'https://b.example/',
      GATE_CONNECT_TIMEOUT_MS: '2',
      GATE_TIMEOUT_MS: '3',
      GATE_BATCH_TIMEOUT_MS: '6',
    };
    const set = settings(t, {}, env);
    assert.deepEqual(set.listen, { host: '0.0.0.0', port: 80 });
    assert.equal(set.upstream.origin, 'https://b.example');
    assert.deepEqual(set.timeouts, { connectMs: 2, silenceMs: 3, batchMs: 6 });
    const flags = {
      listen: '[::1]:1',
      upstream: 'http://c',
      connectTimeoutMs: '4',
      timeoutMs: '5',
      batchTimeoutMs: '7',
    };
    const flagged = settings(t, flags, env);
    assert.deepEqual(flagged.listen, { host: '::1', port: 1 });
    assert.equal(flagged.upstream.origin, 'http://c');
    assert.deepEqual(flagged.timeouts, { connectMs: 4, silenceMs: 5, batchMs: 7 });
    assert.deepEqual(settings(t, { host: '::1', port: '8' }, env).listen, { host: '::1', port: 8 });
    assert.deepEqual(settings(t, { port: '8' }, env).listen, { host: '0.0.0.0', port: 8 });
    const empty = settings(t, {}, { GATE_LISTEN: '', GATE_UPSTREAM: ' ', GATE_TIMEOUT_MS: '' });
    assert.deepEqual(empty.listen, { host: '127.0.0.1', port: 21118 });
    assert.equal(empty.timeouts.silenceMs, 130_000);
  });

  const ORIGIN = 'must be the origin of a server, such as http://127.0.0.1:21119, or unix:/PATH';
  const NUMBER = 'must be a whole number from 1 to 2147483647';
  for (const [flags, env, message] of [
    [{}, { GATE_API_KEY: '' }, 'GATE_API_KEY is not set: give a key of at least 16 characters, or --no-key'],
    [{}, { GATE_API_KEY: '  ' }, 'GATE_API_KEY is not set: give a key of at least 16 characters, or --no-key'],
    [{}, { GATE_API_KEY: 'fifteen-chars-.' }, 'api key from GATE_API_KEY is 15 characters; use at least 16'],
    [{}, { GATE_UPSTREAM_KEY: 'fifteen-chars-.' }, 'api key from GATE_UPSTREAM_KEY is 15 characters; use at least 16'],
    [
      {},
      { GATE_UPSTREAM_KEY: 'sixteen chars ..' },
      'api key from GATE_UPSTREAM_KEY has a space or a character that is not ASCII; no Bearer header carries it',
    ],
    [
      { listen: 'x' },
      {},
      '--listen: must be HOST:PORT or unix:/PATH, such as 127.0.0.1:21118, [::1]:21118 or unix:/run/svc/svc.sock',
    ],
    [
      {},
      { GATE_LISTEN: '1' },
      'GATE_LISTEN: must be HOST:PORT or unix:/PATH, such as 127.0.0.1:21118, [::1]:21118 or unix:/run/svc/svc.sock',
    ],
    [{ upstream: 'localhost:1' }, {}, `--upstream: ${ORIGIN}`],
    [{ upstream: 'ftp://a' }, {}, `--upstream: ${ORIGIN}`],
    [{ upstream: 'http://a/v1' }, {}, `--upstream: ${ORIGIN}`],
    [{ upstream: 'http://a/?x' }, {}, `--upstream: ${ORIGIN}`],
    [{ upstream: 'http://me:pw@a' }, {}, `--upstream: ${ORIGIN}`],
    [{}, { GATE_UPSTREAM: 'a' }, `GATE_UPSTREAM: ${ORIGIN}`],
    [{ timeoutMs: '0' }, {}, `--timeout-ms: ${NUMBER}`],
    [{ batchTimeoutMs: 'x' }, {}, `--batch-timeout-ms: ${NUMBER}`],
    [{ connectTimeoutMs: '1.5' }, {}, `--connect-timeout-ms: ${NUMBER}`],
    [{}, { GATE_TIMEOUT_MS: '2147483648' }, `GATE_TIMEOUT_MS: ${NUMBER}`],
    [
      { run: true, upstream: 'http://10.0.0.1:1' },
      {},
      '--upstream: must be a loopback address with --run, such as http://127.0.0.1:21119',
    ],
    [
      { run: true, upstream: 'https://127.0.0.1:1' },
      {},
      '--upstream: must be a loopback address with --run, such as http://127.0.0.1:21119',
    ],
  ] as const) {
    test(`are refused: ${JSON.stringify({ ...flags, ...env })}`, (t) => {
      assert.throws(() => settings(t, flags, env), new Refusal(message));
    });
  }

  test('without a key need --no-key, and a key beside it is a warning', (t) => {
    const off = settings(t, { key: false }, { GATE_API_KEY: '' }).credential;
    assert.deepEqual(off, { secrets: [], status: 'API key off: --no-key', warnings: [] });
    const both = settings(t, { key: false }).credential;
    assert.deepEqual(both.secrets, []);
    assert.deepEqual(both.warnings, ['the api key from GATE_API_KEY is not checked: --no-key']);
  });

  test('have the key of the server behind the gate, which --run does not need', (t) => {
    assert.equal(settings(t).upstreamKey, undefined);
    assert.equal(settings(t, {}, { GATE_UPSTREAM_KEY: ' ' }).upstreamKey, undefined);
    const env = { GATE_UPSTREAM_KEY: 'the-key-of-the-server' };
    const set = settings(t, {}, env);
    assert.ok(set.upstreamKey?.matches('the-key-of-the-server'));
    assert.ok(!set.credential.secrets.some((key) => key.matches('the-key-of-the-server')));
    assert.deepEqual(set.warnings, []);
    const beside = settings(t, { run: true }, env);
    assert.equal(beside.upstreamKey, undefined);
    assert.deepEqual(beside.warnings, ['GATE_UPSTREAM_KEY is not used: the server of --run has no key']);
  });

  test('take every loopback address with --run', (t) => {
    for (const upstream of ['http://localhost:1', 'http://[::1]:1', 'http://127.0.0.2:1']) {
      assert.equal(settings(t, { run: true, upstream }).upstream.origin, upstream);
    }
  });
});
