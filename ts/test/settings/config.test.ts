import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { formatAddress, isLoopback, parseAddress } from '../../src/network/address.ts';
import { Refusal } from '../../src/refusal.ts';
import { ConfigSchema } from '../../src/schemas/config.ts';
import { type ConfigSources, loadConfig } from '../../src/settings/config.ts';
import { folderWithConfig, makeUnwritable, temporaryFolder, withoutPrivilege } from '../temporary-folder.ts';

/** Loads a configuration without this process's own environment. */
function load(sources: ConfigSources) {
  return loadConfig({ env: {}, ...sources });
}

function fromFile(t: TestContext, settings: unknown, sources: ConfigSources = {}) {
  return load({ cwd: folderWithConfig(t, settings), ...sources });
}

function refuses(work: () => unknown, message: string | RegExp): void {
  assert.throws(work, (error: unknown) => {
    assert.ok(error instanceof Refusal, String(error));
    if (typeof message === 'string') assert.equal(error.message, message);
    else assert.match(error.message, message);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  });
}

suite('defaults', () => {
  test('without file, environment and flags every key has its default', (t) => {
    const cwd = temporaryFolder(t);
    const { config, warnings, created } = load({ cwd });
    assert.deepEqual(
      { ...config },
      {
        generated: false,
        listen: { host: '127.0.0.1', port: 21118 },
        listenMode: '0600',
        device: 'auto',
        model: '',
        modelFile: '',
        modelSha256: '',
        modelAllowHttp: false,
        modelMaxBytes: 8_589_934_592,
        modelFetchMs: 3_600_000,
        modelCacheBytes: 17_179_869_184,
        refreshMinutes: 60,
        s3Endpoint: '',
        s3Region: '',
        s3PathStyle: false,
        runtime: '',
        threads: 0,
        parallel: 1,
        truncate: 'count',
        apiKey: [],
        password: undefined,
        allowNoApiKey: false,
        allowNoPassword: false,
        corsOrigins: [],
        allowedHosts: [],
        logLevel: 'info',
        logFormat: 'auto',
        maxBodyBytes: 8_388_608,
        maxQuestions: 1024,
        maxTokens: 131_072,
        maxBatchStates: 10_000,
        maxBatchBodyBytes: 67_108_864,
        maxQueue: 512,
        maxQueueBytes: 67_108_864,
        requestTimeoutMs: 60_000,
        maxRunMs: 60_000,
        stateCacheBytes: 67_108_864,
        stateCachePrecision: 'fp32',
        drainDelayMs: 0,
        drainMs: 15_000,
        file: undefined,
        configDir: cwd,
        dataDir: undefined,
        modelCache: config.modelCache,
        hub: config.hub,
        workDir: cwd,
        isContainer: false,
      },
    );
    assert.deepEqual(warnings, []);
    assert.equal(created, undefined);
  });

  test('fetched models are kept in $SVC_DATA/models, else among the caches of the user', (t) => {
    const cwd = temporaryFolder(t);
    assert.equal(load({ cwd, env: { SVC_DATA: 'd' } }).config.modelCache, join(cwd, 'd', 'models'));
    const env = { XDG_CACHE_HOME: join(cwd, 'c'), LOCALAPPDATA: join(cwd, 'c') };
    const { modelCache } = load({ cwd, env }).config;
    assert.ok(modelCache.endsWith(join('svc', 'models')), modelCache);
    if (process.platform !== 'darwin') assert.equal(modelCache, join(cwd, 'c', 'svc', 'models'));
  });

  test('nothing of it can be changed', (t) => {
    const { config } = fromFile(t, { cors_origins: ['https://a.example'], api_key: 'k'.repeat(16) });
    for (const value of [config, config.listen, config.corsOrigins, config.allowedHosts, config.apiKey]) {
      assert.ok(Object.isFrozen(value));
    }
  });

  test('every key says what it limits', () => {
    for (const [key, schema] of Object.entries(ConfigSchema.properties)) {
      assert.match(String((schema as { description?: string }).description), /^[A-Z].*\.$/, key);
    }
  });
});

suite('order', () => {
  test('the environment wins over the file, a flag over both', (t) => {
    const cwd = folderWithConfig(t, { threads: 1 });
    assert.equal(load({ cwd }).config.threads, 1);
    assert.equal(load({ cwd, env: { SVC_THREADS: '2' } }).config.threads, 2);
    assert.equal(load({ cwd, env: { SVC_THREADS: '2' }, flags: { threads: '3' } }).config.threads, 3);
  });

  test('an empty environment value counts as unset, for every key', (t) => {
    const names = Object.keys(ConfigSchema.properties).map((key) => `SVC_${key.toUpperCase()}`);
    const env = Object.fromEntries([...names, 'SVC_CONFIG', 'SVC_DATA'].map((name) => [name, '']));
    const file = { threads: 5, allow_no_api_key: true, api_key: 'k'.repeat(16), max_queue: 7 };
    const { config } = fromFile(t, file, { env });
    assert.equal(config.threads, 5);
    assert.equal(config.allowNoApiKey, true);
    assert.equal(config.apiKey.length, 1);
    assert.equal(config.maxQueue, 7);
    assert.equal(config.dataDir, undefined);
  });

  test('listen, device and generated are no variables', (t) => {
    const env = { SVC_LISTEN: '0.0.0.0:1', SVC_DEVICE: 'cuda', SVC_GENERATED: '1' };
    const { config } = load({ cwd: temporaryFolder(t), env });
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 21118 });
    assert.equal(config.device, 'auto');
    assert.equal(config.generated, false);
  });

  test('every other key is a variable', (t) => {
    const cwd = temporaryFolder(t);
    const examples = new Map<string, [string, unknown]>([
      ['model', [join(cwd, 'm'), join(cwd, 'm')]],
      ['runtime', [join(cwd, 'r'), join(cwd, 'r')]],
      ['model_file', ['onnx/m.onnx', 'onnx/m.onnx']],
      ['model_sha256', ['ab'.repeat(32), 'ab'.repeat(32)]],
      ['model_allow_http', ['1', true]],
      ['s3_endpoint', ['http://127.0.0.1:9000', 'http://127.0.0.1:9000']],
      ['s3_region', ['eu-west-1', 'eu-west-1']],
      ['s3_path_style', ['1', true]],
      ['truncate', ['error', 'error']],
      ['listen_mode', ['660', '660']],
      ['log_level', ['debug', 'debug']],
      ['log_format', ['pretty', 'pretty']],
      ['state_cache_precision', ['fp16', 'fp16']],
      ['allow_no_api_key', ['1', true]],
      ['allow_no_password', ['true', true]],
      ['cors_origins', ['https://a.example, tauri://b', ['https://a.example', 'tauri://b']]],
      ['allowed_hosts', [' a.example , b', ['a.example', 'b']]],
    ]);
    const testedElsewhere = new Set(['generated', 'listen', 'device', 'api_key', 'password']);
    for (const key of Object.keys(ConfigSchema.properties).filter((name) => !testedElsewhere.has(name))) {
      const [text, value] = examples.get(key) ?? ['9', 9];
      const config: object = load({ cwd, env: { [`SVC_${key.toUpperCase()}`]: text } }).config;
      const name = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
      assert.deepEqual(Object.entries(config).find(([entry]) => entry === name)?.[1], value, key);
    }
  });

  test('all flags are taken', (t) => {
    const cwd = temporaryFolder(t);
    const engine = { device: 'cpu', model: 'm', modelFile: 'm.onnx', runtime: 'r.so', threads: '4' };
    const flags = { listen: '[::1]:0', ...engine, logLevel: 'warn', logFormat: 'json' };
    const { config } = load({ cwd, flags });
    assert.deepEqual(config.listen, { host: '::1', port: 0 });
    assert.equal(config.device, 'cpu');
    assert.equal(config.model, join(cwd, 'm'));
    assert.equal(config.modelFile, 'm.onnx');
    assert.equal(config.runtime, join(cwd, 'r.so'));
    assert.equal(config.threads, 4);
    assert.equal(config.logLevel, 'warn');
    assert.equal(config.logFormat, 'json');
  });
});

suite('the file', () => {
  test('--config wins over SVC_CONFIG, which wins over svc.json in the working folder', (t) => {
    const cwd = folderWithConfig(t, { threads: 1 });
    writeFileSync(join(cwd, 'a.json'), '{"threads": 2}');
    mkdirSync(join(cwd, 'etc'));
    writeFileSync(join(cwd, 'etc', 'b.json'), '{"threads": 3}');
    const env = { SVC_CONFIG: 'a.json' };
    assert.equal(load({ cwd, env }).config.threads, 2);
    const { config } = load({ cwd, env, flags: { config: join('etc', 'b.json') } });
    assert.equal(config.threads, 3);
    assert.equal(config.file, join(cwd, 'etc', 'b.json'));
    assert.equal(config.configDir, join(cwd, 'etc'));
    assert.equal(config.workDir, cwd);
  });

  test('one that was asked for and is not there refuses', (t) => {
    const cwd = temporaryFolder(t);
    const message = `${join(cwd, 'no.json')}: no such file`;
    refuses(() => load({ cwd, flags: { config: 'no.json' } }), message);
    refuses(() => load({ cwd, env: { SVC_CONFIG: 'no.json' } }), message);
    refuses(() => load({ cwd, env: { SVC_CONFIG: 'no.json' }, create: true }), message);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test('one that cannot be read refuses', (t) => {
    const cwd = temporaryFolder(t);
    mkdirSync(join(cwd, 'svc.json'));
    refuses(() => load({ cwd }), /svc\.json: cannot be read \(EISDIR\)$/);
  });

  test('a byte order mark at its start is no error', (t) => {
    assert.equal(fromFile(t, '\uFEFF{"threads": 6}').config.threads, 6);
  });

  test('a path in it starts at its folder, one from elsewhere at the working folder', (t) => {
    const folder = folderWithConfig(t, { model: 'm', runtime: join('lib', 'r.so') });
    const cwd = temporaryFolder(t);
    const flags = { config: join(folder, 'svc.json') };
    const { config } = load({ cwd, flags });
    assert.equal(config.model, join(folder, 'm'));
    assert.equal(config.runtime, join(folder, 'lib', 'r.so'));
    assert.equal(load({ cwd, flags, env: { SVC_MODEL: 'n' } }).config.model, join(cwd, 'n'));
    assert.equal(load({ cwd, env: { SVC_MODEL: 's3://bucket/model' } }).config.model, 's3://bucket/model');
  });

  test('an unknown key is a warning that names it', (t) => {
    const { config, warnings } = fromFile(t, '{"theads": 3, "threads": 2, "a\\nb": 1, "__proto__": {"threads": 9}}');
    assert.equal(config.threads, 2);
    const meant = 'svc.json: unknown key "theads"; is threads meant?';
    assert.deepEqual(warnings.slice(0, 2), [meant, 'svc.json: unknown key "a\\nb"']);
  });

  for (const [text, place] of [
    ['', 'line 1, column 1: value expected'],
    ['{"threads": }', 'line 1, column 13: value expected'],
    ['{\n  "threads": 1,\n}', 'line 3, column 1: property name expected'],
    ['{\n  "api_key": "a"\n  "threads": 1\n}', 'line 3, column 3: comma expected'],
    ['{"threads": 1} x', 'line 1, column 16: invalid symbol'],
    ['{"threads": 1 // cores\n}', 'line 1, column 15: invalid comment token'],
    ['{"threads": 1', 'line 1, column 14: close brace expected'],
  ] as const) {
    test(`invalid JSON refuses with the place of the error: ${JSON.stringify(text)}`, (t) => {
      refuses(() => fromFile(t, text), `svc.json: invalid JSON at ${place}`);
    });
  }

  for (const text of ['[]', 'null', '"x"', '1']) {
    test(`JSON that is no object refuses: ${text}`, (t) => {
      refuses(() => fromFile(t, text), 'svc.json: must be a JSON object');
    });
  }

  test('the message of a broken file does not quote it', (t) => {
    assert.throws(
      () => fromFile(t, '{"api_key": "tell-nobody-of-this-key" x}'),
      (error: Error) => !error.message.includes('tell-nobody'),
    );
  });
});

suite('wrong values', () => {
  for (const [settings, message] of [
    [{ threads: 257 }, 'threads: must be a whole number from 0 to 256'],
    [{ threads: -1 }, 'threads: must be a whole number from 0 to 256'],
    [{ threads: 1.5 }, 'threads: must be a whole number from 0 to 256'],
    [{ threads: '4' }, 'threads: must be a whole number from 0 to 256'],
    [{ threads: null }, 'threads: must be a whole number from 0 to 256'],
    [{ max_body_bytes: 0 }, 'max_body_bytes: must be a whole number from 1 to 1099511627776'],
    [{ device: 'tpu' }, 'device: must be one of auto, cpu, gpu, cuda, coreml, directml'],
    [{ truncate: true }, 'truncate: must be one of count, error'],
    [{ log_format: 'xml' }, 'log_format: must be one of auto, json, pretty'],
    [{ log_level: 'loud' }, 'log_level: must be one of fatal, error, warn, info, debug, trace, silent'],
    [{ model: 1 }, 'model: must be a string'],
    [{ model_file: 'a/b.onnx' }, 'model_file: must be a graph of the model, such as onnx/model_int8.onnx'],
    [{ model_sha256: 'ab' }, 'model_sha256: must be 64 hexadecimal digits'],
    [{ refresh_minutes: 10_081 }, 'refresh_minutes: must be a whole number from 0 to 10080'],
    [{ s3_endpoint: 'minio:9000' }, 's3_endpoint: must be a URL without a path, such as https://s3.example.com'],
    [{ allow_no_api_key: 1 }, 'allow_no_api_key: must be true or false'],
    [{ allow_no_api_key: 'true' }, 'allow_no_api_key: must be true or false'],
    [{ api_key: 1234567890123456 }, 'api_key: must be a string or a list of strings'],
    [{ api_key: ['k'.repeat(16), 1] }, 'api_key: must be a string or a list of strings'],
    [{ password: ['x'] }, 'password: must be a string'],
    [{ allowed_hosts: 'a' }, 'allowed_hosts: must be a list of host names'],
    [{ cors_origins: ['*'] }, 'cors_origins: must be a list of origins, such as https://app.example.com'],
    [{ cors_origins: ['https://a/'] }, 'cors_origins: must be a list of origins, such as https://app.example.com'],
    [
      { listen: '127.0.0.1' },
      'listen: must be HOST:PORT or unix:/PATH, such as 127.0.0.1:21118, [::1]:21118 or unix:/run/svc/svc.sock',
    ],
    [
      { listen: 21118 },
      'listen: must be HOST:PORT or unix:/PATH, such as 127.0.0.1:21118, [::1]:21118 or unix:/run/svc/svc.sock',
    ],
  ] as const) {
    test(`in the file: ${JSON.stringify(settings)}`, (t) => {
      refuses(() => fromFile(t, settings), `svc.json: ${message}`);
    });
  }

  test('in the file refuse even where the environment or a flag wins', (t) => {
    const cwd = folderWithConfig(t, { threads: 'x' });
    const message = 'svc.json: threads: must be a whole number from 0 to 256';
    refuses(() => load({ cwd, env: { SVC_THREADS: '1' }, flags: { threads: '2' } }), message);
  });

  for (const [name, text, wanted] of [
    ['SVC_THREADS', '1e1', 'a whole number from 0 to 256'],
    ['SVC_THREADS', '-1', 'a whole number from 0 to 256'],
    ['SVC_THREADS', '999', 'a whole number from 0 to 256'],
    ['SVC_MAX_BODY_BYTES', '8MiB', 'a whole number from 1 to 1099511627776'],
    ['SVC_TRUNCATE', 'cut', 'one of count, error'],
    ['SVC_CORS_ORIGINS', 'https://a.example,b', 'a list of origins, such as https://app.example.com'],
    ['SVC_ALLOW_NO_API_KEY', 'yes', '1, true, 0 or false'],
    ['SVC_ALLOW_NO_API_KEY', 'TRUE', '1, true, 0 or false'],
    ['SVC_ALLOW_NO_PASSWORD', '2', '1, true, 0 or false'],
  ] as const) {
    test(`in the environment: ${name}=${text}`, (t) => {
      refuses(() => load({ cwd: temporaryFolder(t), env: { [name]: text } }), `${name}: must be ${wanted}`);
    });
  }

  for (const [flags, message] of [
    [{ threads: 'many' }, '--threads: must be a whole number from 0 to 256'],
    [{ threads: '' }, '--threads: must be a whole number from 0 to 256'],
    [
      { listen: 'localhost' },
      '--listen: must be HOST:PORT or unix:/PATH, such as 127.0.0.1:21118, [::1]:21118 or unix:/run/svc/svc.sock',
    ],
    [{ device: 'tpu' }, '--device: must be one of auto, cpu, gpu, cuda, coreml, directml'],
    [{ logLevel: '' }, '--log-level: must be one of fatal, error, warn, info, debug, trace, silent'],
  ] as const) {
    test(`in a flag: ${JSON.stringify(flags)}`, (t) => {
      refuses(() => load({ cwd: temporaryFolder(t), flags }), message);
    });
  }

  for (const [text, value] of [
    ['1', true],
    ['true', true],
    ['0', false],
    ['false', false],
  ] as const) {
    test(`SVC_ALLOW_NO_API_KEY=${text} is ${value}, whatever the file says`, (t) => {
      for (const allow_no_api_key of [true, false]) {
        const { config } = fromFile(t, { allow_no_api_key }, { env: { SVC_ALLOW_NO_API_KEY: text } });
        assert.equal(config.allowNoApiKey, value);
      }
    });
  }
});

suite('keys and passwords in the settings', () => {
  const key = 'a-key-of-the-file-0123';

  test('show themselves nowhere', (t) => {
    const { config } = fromFile(t, { api_key: [key], password: 'correct horse' });
    for (const text of [JSON.stringify(config), inspect(config, { depth: 9, showHidden: true }), `${config.apiKey}`]) {
      assert.ok(!text.includes(key) && !text.includes('correct horse'), text);
      assert.ok(text.includes('[secret]'), text);
    }
  });

  test('the environment replaces those of the file, a list as a whole', (t) => {
    const { config } = fromFile(t, { api_key: ['x', 'y'] }, { env: { SVC_API_KEY: key } });
    assert.deepEqual(
      config.apiKey.map((secret) => [secret.reveal(), secret.origin]),
      [[key, 'SVC_API_KEY']],
    );
  });

  for (const api_key of ['', '   ', []]) {
    test(`api_key ${JSON.stringify(api_key)} is none`, (t) => {
      assert.deepEqual(fromFile(t, { api_key }).config.apiKey, []);
    });
  }

  test('a key loses the spaces around it, which no header carries; a password keeps them', (t) => {
    const env = { SVC_API_KEY: ` ${key}\n`, SVC_PASSWORD: ' two spaces ' };
    const { config } = load({ cwd: temporaryFolder(t), env });
    assert.equal(config.apiKey[0]?.reveal(), key);
    assert.equal(config.password?.reveal(), ' two spaces ');
  });

  test('the published default password counts as none, with a warning', (t) => {
    const { config, warnings } = fromFile(t, { password: 'adminadmin' });
    assert.equal(config.password, undefined);
    assert.deepEqual(warnings, ['svc.json: password: the published default password counts as none']);
  });

  test('the published default password in the environment leaves the one of the file', (t) => {
    const { config } = fromFile(t, { password: 'own password' }, { env: { SVC_PASSWORD: 'adminadmin' } });
    assert.equal(config.password?.reveal(), 'own password');
    assert.equal(config.password?.origin, 'svc.json');
  });
});

suite('the file of the first start', () => {
  test('holds generated, listen and device, and is read again without a change', (t) => {
    const cwd = temporaryFolder(t);
    const first = load({ cwd, create: true });
    assert.equal(first.created, join(cwd, 'svc.json'));
    assert.equal(first.config.file, join(cwd, 'svc.json'));
    const text = readFileSync(join(cwd, 'svc.json'), 'utf8');
    assert.deepEqual(JSON.parse(text), { generated: true, listen: '127.0.0.1:21118', device: 'auto' });
    const second = load({ cwd, create: true });
    assert.equal(second.created, undefined);
    assert.deepEqual(second.warnings, []);
    assert.equal(second.config.generated, true);
    assert.equal(readFileSync(join(cwd, 'svc.json'), 'utf8'), text);
    assert.deepEqual(readdirSync(cwd), ['svc.json']);
  });

  test('holds the defaults, not the flags, and no secret', (t) => {
    const cwd = temporaryFolder(t);
    const env = { SVC_API_KEY: 'k'.repeat(16), SVC_PASSWORD: 'own password' };
    load({ cwd, create: true, env, flags: { listen: '0.0.0.0:80', device: 'cpu' } });
    const text = readFileSync(join(cwd, 'svc.json'), 'utf8');
    assert.deepEqual(JSON.parse(text), { generated: true, listen: '127.0.0.1:21118', device: 'auto' });
  });

  test('is not made unless asked for, nor by a start that is refused', (t) => {
    const cwd = temporaryFolder(t);
    load({ cwd });
    refuses(() => load({ cwd, create: true, flags: { threads: 'x' } }), /--threads/);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test('never replaces a file, an empty one either', (t) => {
    const cwd = folderWithConfig(t, '{}');
    assert.equal(load({ cwd, create: true }).created, undefined);
    assert.equal(readFileSync(join(cwd, 'svc.json'), 'utf8'), '{}');
  });

  test('where it cannot be written nothing is amiss', (t) => {
    const cwd = temporaryFolder(t);
    makeUnwritable(cwd);
    const { config, created, warnings } = withoutPrivilege(() => load({ cwd, create: true }));
    assert.equal(created, undefined);
    assert.equal(config.file, undefined);
    assert.deepEqual(warnings, []);
    assert.ok(!existsSync(join(cwd, 'svc.json')));
  });

  test('a read-only one is read as any other', (t) => {
    const cwd = folderWithConfig(t, { threads: 8 });
    chmodSync(join(cwd, 'svc.json'), 0o444);
    assert.equal(withoutPrivilege(() => load({ cwd, create: true })).config.threads, 8);
  });
});

suite('addresses', () => {
  for (const [text, host, port] of [
    ['127.0.0.1:21118', '127.0.0.1', 21118],
    ['0.0.0.0:0', '0.0.0.0', 0],
    ['localhost:80', 'localhost', 80],
    ['[::1]:65535', '::1', 65535],
    ['[::]:80', '::', 80],
    [':21118', '0.0.0.0', 21118],
  ] as const) {
    test(`${text} is host ${host}, port ${port}`, () => {
      assert.deepEqual(parseAddress(text), { host, port });
    });
  }

  for (const text of ['', 'localhost', '127.0.0.1', '127.0.0.1:', '127.0.0.1:x', 'a:65536', 'a:-1', 'a:1 ', 'a b:1']) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseAddress(text), undefined));
  }

  for (const text of ['::1:80', '[::1]', '[127.0.0.1]:80', '[]:80', 'http://a:80', 'a:80/', 'user@a:80', 'a:080000']) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseAddress(text), undefined));
  }

  for (const text of ['127.0.0.1:80', '[::1]:80', 'localhost:0']) {
    test(`${text} is written as it was read`, () => {
      const address = parseAddress(text);
      assert.equal(address && formatAddress(address), text);
    });
  }

  for (const host of [
    '127.0.0.1',
    '127.255.0.9',
    '::1',
    '0:0:0:0:0:0:0:1',
    'localhost',
    'LOCALHOST',
    '::ffff:127.0.0.1',
  ]) {
    test(`${host} is loopback`, () => assert.ok(isLoopback(host)));
  }

  for (const host of ['0.0.0.0', '::', '192.168.0.1', '128.0.0.1', '127.0.0.1.example.com', 'localhost.example', '']) {
    test(`${JSON.stringify(host)} is not loopback`, () => assert.ok(!isLoopback(host)));
  }
});
