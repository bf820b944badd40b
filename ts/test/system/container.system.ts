import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, suite, type TestContext, test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import {
  Container,
  type ContainerOptions,
  execForm,
  filesOf,
  INSTRUCTIONS,
  makeRoot,
  removeRoot,
  volume,
} from './container.ts';

const PASSWORD = 'twelve-chars';
const KEY = 'sixteen-chars-..';
const BOTH = { SVC_PASSWORD: PASSWORD, SVC_API_KEY: KEY };
const OWN_OR = 'must be set, or an svc.json of your own mounted at /data/svc.json';
const URL = 'http://127.0.0.1:21118';

const root = makeRoot();
after(() => removeRoot(root));

/** Returns a container whose model is loaded. */
async function started(t: TestContext, options: ContainerOptions): Promise<Container> {
  const container = new Container(t, root, options);
  await container.logged(/model .* loaded/);
  return container;
}

/** Returns the status of a request from inside the container's network. */
async function status(container: Container, ...args: string[]): Promise<number> {
  const curl = ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', ...args];
  return Number((await container.inNetwork(...curl)).stdout);
}

suite('the container starts', () => {
  test('with both credentials: on every address, behind both, and well for its health check', async (t) => {
    const container = await started(t, { data: volume(t), env: BOTH });
    assert.equal(await status(container, `${URL}/v1/systemone`, '-d', THREE_TYPES), 401);
    const bearer = `Authorization: Bearer ${KEY}`;
    assert.equal(await status(container, `${URL}/v1/systemone`, '-d', THREE_TYPES, '-H', bearer), 200);
    assert.equal(await status(container, `${URL}/docs`), 200);
    assert.equal(await status(container, `${URL}/stats`), 401);
    assert.equal(await status(container, `${URL}/stats`, '-u', `x:${PASSWORD}`), 200);
    const listening = await container.inNetwork('ss', '-Hltn');
    assert.match(listening.stdout, / 0\.0\.0\.0:21118 /);
    const health = await container.exec(...execForm('HEALTHCHECK'));
    assert.equal(health.stdout, 'ok\n', health.stderr);
    assert.equal(health.code, 0);
  });

  test("a second time on the same volume, whose generated svc.json is not the user's", async (t) => {
    const data = volume(t);
    const first = await started(t, { data, env: BOTH });
    first.signal('TERM');
    assert.equal((await first.ended).code, 0);
    assert.deepEqual(filesOf(data), ['svc.json']);
    const second = await started(t, { data, env: BOTH });
    assert.equal(await status(second, `${URL}/health`), 200);
    second.signal('TERM');
    assert.equal((await second.ended).code, 0);
    const { code, stderr } = await new Container(t, root, { data }).ended;
    assert.equal(stderr, `SVC_PASSWORD and SVC_API_KEY ${OWN_OR}\n`);
    assert.equal(code, 1);
  });

  test('without credentials when a svc.json of the user is mounted, and keeps what it generates in /data', async (t) => {
    const data = volume(t, { 'svc.json': {} });
    const container = await started(t, { data });
    assert.deepEqual(filesOf(data), ['svc.api-key', 'svc.json', 'svc.password']);
    const key = (await container.exec('cat', '/data/svc.api-key')).stdout.trim();
    assert.equal(await status(container, `${URL}/v1/models`, '-H', `Authorization: Bearer ${key}`), 200);
    container.signal('TERM');
    const { stderr } = await container.ended;
    assert.ok(!stderr.includes(key));
    assert.match(stderr, /API key generated: \/data\/svc\.api-key, sha256 [0-9a-f]{12}/);
    const modes = execFileSync('stat', ['-c', '%a %u', join(data, 'svc.api-key'), join(data, 'svc.password')]);
    assert.equal(modes.toString(), '600 10001\n600 10001\n');
    // The second start uses the key that the first has made.
    const second = await started(t, { data });
    assert.equal(await status(second, `${URL}/v1/models`, '-H', `Authorization: Bearer ${key}`), 200);
  });

  test('on the address of a svc.json of the user, where the health check finds it', async (t) => {
    const data = volume(t, { 'svc.json': { listen: '127.0.0.1:4000' } });
    const container = await started(t, { data, env: BOTH });
    assert.equal(await status(container, 'http://127.0.0.1:4000/health'), 200);
    assert.equal((await container.exec(...execForm('HEALTHCHECK'))).stdout, 'ok\n');
  });

  test('on its own address when a generated svc.json from elsewhere names another', async (t) => {
    const data = volume(t, { 'svc.json': { generated: true, listen: '127.0.0.1:21118', device: 'auto' } });
    const container = await started(t, { data, env: BOTH });
    assert.match((await container.inNetwork('ss', '-Hltn')).stdout, / 0\.0\.0\.0:21118 /);
  });

  test('with a /data that cannot be written, when both credentials are set', async (t) => {
    const data = volume(t);
    const container = await started(t, { data, env: BOTH, isDataReadOnly: true });
    assert.equal(await status(container, `${URL}/health`), 200);
    assert.deepEqual(filesOf(data), []);
  });

  test('as the gate, which starts the server beside it and needs its own key alone', async (t) => {
    const command = ['gate', '--run', '--listen', '0.0.0.0:21118'];
    const container = new Container(t, root, { data: volume(t), env: { GATE_API_KEY: KEY }, command });
    await container.logged(/listening on http:\/\/0\.0\.0\.0:21118/);
    assert.equal(await status(container, `${URL}/v1/models`), 401);
    assert.equal(await status(container, `${URL}/v1/models`, '-H', `Authorization: Bearer ${KEY}`), 200);
    assert.equal((await container.exec(...execForm('HEALTHCHECK'))).stdout, 'ok\n');
    container.signal('TERM');
    assert.equal((await container.ended).code, 0);
  });
});

suite('the container does not start', () => {
  for (const [env, line] of [
    [{}, `SVC_PASSWORD and SVC_API_KEY ${OWN_OR}`],
    [{ SVC_PASSWORD: PASSWORD }, `SVC_API_KEY ${OWN_OR}`],
    [{ SVC_API_KEY: KEY }, `SVC_PASSWORD ${OWN_OR}`],
    [{ SVC_PASSWORD: '', SVC_API_KEY: KEY }, `SVC_PASSWORD ${OWN_OR}`],
    [
      { SVC_PASSWORD: 'adminadmin', SVC_API_KEY: KEY },
      `SVC_PASSWORD is the published default password, which counts as none: SVC_PASSWORD ${OWN_OR}`,
    ],
    [{ SVC_PASSWORD: 'eleven-char', SVC_API_KEY: KEY }, 'SVC_PASSWORD must be at least 12 characters, it has 11'],
    [
      { SVC_PASSWORD: PASSWORD, SVC_API_KEY: 'fifteen-chars-.' },
      'api key from SVC_API_KEY is 15 characters; use at least 16',
    ],
    // The image's own rules cannot be switched off from outside.
    [{ SVC_CONTAINER: '0' }, `SVC_PASSWORD and SVC_API_KEY ${OWN_OR}`],
  ] as const) {
    test(`with ${JSON.stringify(env)}: one line, exit code 1`, async (t) => {
      for (const files of [{}, { 'svc.json': { generated: true, listen: '0.0.0.0:21118' } }]) {
        const { code, stderr, stdout } = await new Container(t, root, { data: volume(t, files), env }).ended;
        assert.equal(stderr.trim().split('\n').at(-1), line);
        assert.equal(stdout, '');
        assert.equal(code, 1);
      }
    });
  }

  test('with a short password beside a svc.json of the user', async (t) => {
    const data = volume(t, { 'svc.json': {} });
    const { code, stderr } = await new Container(t, root, { data, env: { SVC_PASSWORD: 'short' } }).ended;
    assert.equal(stderr, 'SVC_PASSWORD must be at least 12 characters, it has 5\n');
    assert.equal(code, 1);
  });

  test('with a svc.json of the user alone on a /data that cannot be written', async (t) => {
    const data = volume(t, { 'svc.json': {} });
    const { code, stderr } = await new Container(t, root, { data, isDataReadOnly: true }).ended;
    const last = stderr.trim().split('\n').at(-1);
    assert.match(
      last ?? '',
      /^svc\.api-key: cannot be written to .*; set SVC_API_KEY, or SVC_DATA to a writable folder$/,
    );
    assert.equal(code, 1);
  });
});

suite('in the container', () => {
  test('the server is process 1, of uid 10001, in /data, and can write nowhere else', async (t) => {
    const container = await started(t, { data: volume(t), env: BOTH });
    const { stdout } = await container.exec(
      'sh',
      '-c',
      'cat /proc/1/status; tr "\\0" " " </proc/1/cmdline; readlink /proc/1/cwd',
    );
    assert.match(stdout, /^Name:\tnode$/m);
    assert.match(stdout, /^Uid:(\t10001){4}$/m);
    assert.match(stdout, /^Gid:(\t10001){4}$/m);
    assert.match(stdout, /^Groups:\t *$/m);
    assert.match(stdout, /^CapEff:\t0+$/m);
    assert.match(stdout, /^NoNewPrivs:\t1$/m);
    assert.match(stdout, /^node \/app\/bin\/svc\.js serve \/data$/m);
    assert.doesNotMatch(stdout, new RegExp(`${PASSWORD}|${KEY}`));
    const writes = await container.exec(
      'sh',
      '-c',
      'touch /data/x && rm /data/x; find / -xdev -writable -not -type l 2>/dev/null',
    );
    assert.deepEqual(
      writes.stdout.split('\n').filter((path) => path !== '' && !/^\/(dev|proc|data)(\/|$)/.test(path)),
      [],
    );
    assert.equal(writes.stderr, '');
  });

  test('/app belongs to root and nobody else may change it, wherever it is mounted', () => {
    const found = execFileSync('find', [
      join(root, 'app'),
      '(',
      '-not',
      '-user',
      'root',
      '-o',
      '-perm',
      '/002',
      ')',
      '-not',
      '-type',
      'l',
    ]);
    assert.equal(found.toString(), '');
    assert.ok(statSync(join(root, 'app', 'deploy', 'docker-entrypoint.sh')).mode & 0o001);
  });

  test('svc doctor and svc config know the rules of the image', async (t) => {
    const container = await started(t, { data: volume(t), env: BOTH });
    const doctor = await container.exec('/app/deploy/docker-entrypoint.sh', 'doctor');
    // Only process 1 has the container's variables.
    assert.match(doctor.stdout, /^problem {2}container +SVC_PASSWORD and SVC_API_KEY must be set/m);
    assert.match(doctor.stdout, /^warning {2}port +0\.0\.0\.0:21118 is taken by a server that is running/m);
    const config = await container.exec('/app/deploy/docker-entrypoint.sh', 'config');
    assert.match(config.stdout, /^listen +0\.0\.0\.0:21118 +container image$/m);
  });

  for (const signal of ['TERM', 'INT'] as const) {
    test(`SIG${signal} reaches the server, which ends in order with 0`, async (t) => {
      const container = await started(t, { data: volume(t), env: BOTH });
      container.signal(signal);
      const { code, stderr } = await container.ended;
      assert.match(stderr, new RegExp(`SIG${signal}: finishing the open requests`));
      assert.equal(code, 0);
    });
  }
});

suite('the files of the image', () => {
  test('say what the interface wants: user, folder, port, health check, labels, no shell form', () => {
    assert.ok(INSTRUCTIONS.includes('USER 10001:10001'));
    assert.ok(INSTRUCTIONS.includes('WORKDIR /data'));
    assert.ok(INSTRUCTIONS.includes('EXPOSE 21118'));
    assert.deepEqual(execForm('ENTRYPOINT'), ['/app/deploy/docker-entrypoint.sh']);
    assert.match(INSTRUCTIONS[0] ?? '', /^FROM node:\d+\.\d+\.\d+-bookworm-slim$/);
    assert.match(INSTRUCTIONS.join('\n'), /^LABEL .*org\.opencontainers\.image\.licenses="Apache-2\.0"/m);
    // The last stage of the Dockerfile builds nothing and fetches nothing.
    assert.doesNotMatch(INSTRUCTIONS.join('\n'), /apt|npm ci|cargo|curl|ADD/);
  });

  test('are found well by the linters', async () => {
    const { SYSTEM_TEST_PYTHON: python = '' } = process.env;
    const linter = (name: string) => join(dirname(python), name);
    const docker = await runCommand(linter('hadolint'), {
      args: ['--failure-threshold', 'style', 'Dockerfile'],
      cwd: REPOSITORY,
    });
    assert.equal(docker.stdout + docker.stderr, '');
    assert.equal(docker.code, 0);
    const shell = await runCommand(linter('shellcheck'), { args: ['deploy/docker-entrypoint.sh'], cwd: REPOSITORY });
    assert.equal(shell.stdout + shell.stderr, '');
    assert.equal(shell.code, 0);
  });
});
