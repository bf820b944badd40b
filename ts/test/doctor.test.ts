import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { cpuFeatures, processorFinding } from '../src/doctor/cpu.ts';
import type { Finding } from '../src/doctor/finding.ts';
import { checkMemory, checkNode } from '../src/doctor/machine.ts';
import { parallelFindings } from '../src/doctor/model.ts';
import { checkConfig, checkCredentials, checkFolders, checkPort } from '../src/doctor/settings.ts';
import { healthOf } from '../src/network/health.ts';
import { type ConfigSources, loadConfig } from '../src/settings/config.ts';
import { listen } from './gate/gate-under-test.ts';
import { runSvc, SvcProcess } from './svc-process.ts';
import { folderWithConfig, makeUnwritable, temporaryFolder, withoutPrivilege } from './temporary-folder.ts';

const KEY = 'a-key-of-at-least-sixteen';

function load(sources: ConfigSources) {
  return loadConfig({ env: {}, ...sources });
}

const statuses = (findings: readonly Finding[]) => findings.map(({ check, status }) => [check, status]);

suite('the machine', () => {
  test('an old Node is a problem, any later one is not', () => {
    assert.equal(checkNode('v18.20.8').status, 'problem');
    for (const version of ['v20.0.0', 'v22.1.0', 'v100.0.0', process.version])
      assert.equal(checkNode(version).status, 'ok');
  });

  test('little memory is a warning', () => {
    assert.equal(checkMemory(2 ** 30).status, 'ok');
    assert.deepEqual(checkMemory(100 * 2 ** 20), {
      check: 'memory',
      status: 'warning',
      message: '100 MiB free',
      advice: "leave 768 MiB to the server, or raise the container's limit",
    });
    assert.match(checkMemory().message, /^[1-9]\d* MiB free$/);
  });

  for (const [what, arch, list, names, status] of [
    ['Ice Lake', 'x64', 'flags\t\t: fpu avx2 avx512f avx512_vnni', ['AVX2', 'AVX-512 VNNI'], 'ok'],
    ['Alder Lake', 'x64', 'flags : fpu avx2 avx_vnni', ['AVX2', 'AVX-VNNI'], 'ok'],
    ['Haswell', 'x64', 'flags : fpu avx avx2', ['AVX2'], 'ok'],
    ['Sandy Bridge', 'x64', 'flags : fpu avx avx2x', [], 'warning'],
    ['Graviton 2', 'arm64', 'Features\t: fp asimd asimddp', ['NEON dot product'], 'ok'],
    ['Cortex-A72', 'arm64', 'Features\t: fp asimd', [], 'warning'],
  ] as const) {
    test(`the features of ${what} are read and judged`, () => {
      const features = cpuFeatures(`processor\t: 0\n${list}\nbugs\t: x\n`, arch) ?? assert.fail();
      assert.deepEqual([...features], names);
      const finding = processorFinding(what, arch, features);
      assert.equal(finding.status, status);
      assert.equal(finding.advice === undefined, status === 'ok');
      assert.equal(
        finding.message.includes('full speed'),
        names.some((name) => name !== 'AVX2'),
      );
    });
  }

  test('a list of features that is not there is not guessed', () => {
    assert.equal(cpuFeatures('processor : 0\n', 'x64'), undefined);
    assert.equal(cpuFeatures('flags : avx2', 's390x' as NodeJS.Architecture), undefined);
  });
});

suite('the settings', () => {
  test('each warning of the file is one of the doctor', (t) => {
    const loaded = load({ cwd: folderWithConfig(t, { theads: 1, password: 'adminadmin' }) });
    assert.deepEqual(statuses(checkConfig(loaded)), [
      ['config', 'warning'],
      ['config', 'warning'],
      ['config', 'ok'],
    ]);
  });

  test('folders that cannot be written are warnings', (t) => {
    const cwd = temporaryFolder(t);
    const dataDir = temporaryFolder(t);
    const { config } = load({ cwd, env: { SVC_DATA: dataDir } });
    assert.deepEqual(statuses(checkFolders(config)), [['folders', 'ok']]);
    for (const folder of [cwd, dataDir]) makeUnwritable(folder);
    assert.deepEqual(statuses(withoutPrivilege(() => checkFolders(config))), [
      ['folders', 'warning'],
      ['folders', 'warning'],
    ]);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test('credentials that would be made are told, and not made', (t) => {
    const cwd = temporaryFolder(t);
    const { config } = load({ cwd, flags: { listen: '0.0.0.0:1' } });
    const findings = checkCredentials(config, false);
    assert.deepEqual(statuses(findings), [
      ['api key', 'ok'],
      ['password', 'ok'],
    ]);
    assert.equal(findings[0]?.message, `API key required: the first start makes ${join(cwd, 'svc.api-key')}`);
    assert.ok(!existsSync(join(cwd, 'svc.api-key')));
    makeUnwritable(cwd);
    assert.deepEqual(statuses(withoutPrivilege(() => checkCredentials(config, false))), [
      ['api key', 'problem'],
      ['password', 'problem'],
    ]);
  });

  test('a short key is a problem, with the length and without the key', (t) => {
    const { config } = load({ cwd: folderWithConfig(t, {}), env: { SVC_API_KEY: 'hidden', SVC_PASSWORD: 'x' } });
    const [finding] = checkCredentials(config, false);
    assert.equal(finding?.status, 'problem');
    assert.equal(finding?.message, 'api key from SVC_API_KEY is 6 characters; use at least 16');
  });

  test('what the container image lacks is a problem there, and nowhere else', (t) => {
    const { config } = load({ cwd: temporaryFolder(t), env: { SVC_API_KEY: KEY } });
    assert.deepEqual(statuses(checkCredentials(config, true)).at(-1), ['container', 'problem']);
    assert.ok(!checkCredentials(config, false).some(({ status }) => status === 'problem'));
  });

  test('a port that is taken is a problem, unless a server of this kind has it', async (t) => {
    const at = (port: number) => load({ cwd: folderWithConfig(t, { listen: `127.0.0.1:${port}` }) }).config;
    assert.equal((await checkPort(at(0))).status, 'ok');
    const other = await listen(
      t,
      createServer((socket) => socket.end('hello')),
    );
    assert.equal((await checkPort(at(other))).status, 'problem');
    const record = { status: 'loading', model: null, sha256: null };
    const own = await listen(
      t,
      createHttpServer((_, res) => res.writeHead(503).end(JSON.stringify(record))),
    );
    const finding = await checkPort(at(own));
    assert.equal(finding.status, 'warning');
    assert.match(finding.message, /taken by a server that is running \(status loading, model null\)$/);
  });

  test('a server on every address is asked on that of this machine', async (t) => {
    const record = { status: 'ok', model: 'm', sha256: 's' };
    const port = await listen(
      t,
      createHttpServer((_, res) => res.end(JSON.stringify(record))),
    );
    assert.deepEqual(await healthOf({ host: '0.0.0.0', port }), record);
    const html = await listen(
      t,
      createHttpServer((_, res) => res.end('<html>')),
    );
    assert.equal(await healthOf({ host: '127.0.0.1', port: html }), undefined);
  });
});

/** Writes a file that other users than its owner can read, on systems that have such modes. */
function openFile(folder: string, name: string, text: string): void {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}

interface Report {
  readonly status: string;
  readonly findings: readonly Finding[];
}

async function report(t: TestContext, cwd: string, args: readonly string[] = [], env = {}) {
  const { code, stdout, stderr } = await runSvc(t, ['doctor', '--json', '--listen', '127.0.0.1:0', ...args], {
    cwd,
    env,
  });
  assert.equal(stderr, '');
  return { code, ...(JSON.parse(stdout) as Report) };
}

suite('svc doctor', { concurrency: 2 }, () => {
  test('looks at everything, makes a decision, and exits with 0', async (t) => {
    const cwd = temporaryFolder(t);
    const { code, findings } = await report(t, cwd, ['--device', 'cpu']);
    assert.equal(code, 0);
    const wanted = [
      'node',
      'cpu',
      'memory',
      'config',
      'folders',
      'api key',
      'password',
      'port',
      'runtime',
      'products',
      'model',
    ];
    assert.deepEqual([...new Set(findings.map(({ check }) => check))], wanted);
    const model = findings.find(({ check }) => check === 'model')?.message ?? '';
    assert.match(model, /^svc-small \S+ on cpu, \d+ threads?: loaded in \d+ ms, one decision in [\d.]+ ms$/);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test('prints a line for each finding, and a total', async (t) => {
    const { code, stdout } = await runSvc(t, ['doctor', '--listen', '127.0.0.1:0'], { cwd: temporaryFolder(t) });
    assert.equal(code, 0);
    assert.match(stdout, /^ok {7}port {8}127\.0\.0\.1:0 is free$/m);
    assert.match(stdout, /\n\d+ ok, \d+ warnings?, 0 problems\n$/);
  });

  test('tells how many requests may be on the model at once', async (t) => {
    const told = async (parallel: string) => {
      const args = ['--device', 'cpu', '--threads', '2', '--parallel', parallel];
      const { code, findings } = await report(t, temporaryFolder(t), args);
      assert.equal(code, 0);
      return findings.filter(({ check }) => check === 'parallel').map(({ status, message }) => `${status}: ${message}`);
    };
    assert.deepEqual(await told('auto'), ['ok: at most 2 on the model at once (parallel is auto)']);
    assert.deepEqual(await told('8'), ['warning: at most 2 on the model at once (parallel is 8): there are 2 threads']);
  });

  test('tells that an accelerator has one request at a time', () => {
    const told = (parallel: number | 'auto') => parallelFindings(parallel, { device: 'cuda', threads: 4 });
    assert.deepEqual(told(1), []);
    assert.equal(told('auto')[0]?.status, 'ok');
    assert.match(told(2)[0]?.message ?? '', /^at most 1 on the model at once .*: cuda has one at a time$/);
  });

  test('warns of a PORT that has no effect', async (t) => {
    const { findings } = await report(t, temporaryFolder(t), ['--device', 'cpu'], { PORT: '8080' });
    const warned = findings.filter(
      ({ status, message }) => status === 'warning' && message.startsWith('PORT has no effect'),
    );
    assert.equal(warned.length, 1);
  });

  test('does not tell of an accelerator that is not there as of a fault', async (t) => {
    const { findings } = await report(t, temporaryFolder(t), []);
    const devices = findings.filter(
      ({ check, message }) => check === 'device' && /libonnxruntime_providers|no /.test(message),
    );
    for (const { status, message } of devices) {
      assert.equal(status, 'ok');
      assert.match(message, /^cpu is used, as no other was asked for; /);
    }
    // The ONNX Runtime of Linux that comes along has no CUDA.
    assert.ok(process.platform !== 'linux' || devices.length > 0);
  });

  for (const [what, args, check, message] of [
    ['a model folder that is not there', ['--model', 'no-such-folder'], 'model', /no-such-folder/],
    ['a runtime that is not there', ['--runtime', 'no-such-file'], 'runtime', /not found: .*no-such-file$/],
    ['a device that is not there', ['--device', 'cuda'], 'device', /^device cuda: /],
    ['a wrong setting', ['--threads', 'x'], 'config', /^--threads: must be a whole number/],
    ['a settings file that is not there', ['--config', 'no.json'], 'config', /no\.json: no such file$/],
  ] as const) {
    test(`${what} is a problem with advice, and exit code 1`, async (t) => {
      const { code, status, findings } = await report(t, temporaryFolder(t), args);
      assert.equal(code, 1);
      assert.equal(status, 'problem');
      const problems = findings.filter((finding) => finding.status === 'problem');
      assert.equal(problems.length, 1);
      assert.equal(problems[0]?.check, check);
      assert.match(problems[0]?.message ?? '', message);
      assert.ok(problems[0]?.advice);
    });
  }

  test('warnings alone leave the exit code 0', async (t) => {
    const { code, status } = await report(t, folderWithConfig(t, { theads: 1 }));
    assert.equal(status, 'warning');
    assert.equal(code, 0);
  });

  test('files with secrets that others can read are warnings, and no secret is told', async (t) => {
    const cwd = temporaryFolder(t);
    openFile(cwd, 'svc.json', JSON.stringify({ api_key: KEY }));
    openFile(cwd, 'svc.password', 'hidden-password\n');
    const { findings } = await report(t, cwd);
    const warned = findings.filter(({ status }) => status === 'warning').map(({ check }) => check);
    assert.deepEqual(warned, process.platform === 'win32' ? [] : ['password', 'credentials']);
    assert.doesNotMatch(JSON.stringify(findings), /hidden|a-key-of/);
  });

  test('svc health says whether the server of the settings is well', async (t) => {
    const cwd = temporaryFolder(t);
    const server = new SvcProcess(t, ['serve', '--listen', '127.0.0.1:0'], { cwd });
    await server.logged(/model .* loaded/);
    const listen = (await server.url()).replace('http://', '');
    const well = await runSvc(t, ['health', '--listen', listen], { cwd });
    assert.equal(well.stdout, 'ok\n');
    assert.equal(well.code, 0);
    const taken = await runSvc(t, ['doctor', '--listen', listen, '--device', 'cpu'], { cwd });
    assert.match(taken.stdout, /^warning {2}port .* \(status ok, model svc-small\)$/m);
    server.signal('SIGTERM');
    await server.finished;
    const gone = await runSvc(t, ['health', '--listen', listen], { cwd });
    assert.equal(gone.stderr, `no server answers on ${listen}\n`);
    assert.equal(gone.code, 1);
  });
});
