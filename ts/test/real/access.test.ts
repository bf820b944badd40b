/** Tests the access rules of the real server, and that none of its output contains a secret. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fixture } from '../addon/model-folders.ts';
import { THREE_TYPES } from '../addon/requests.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';
import { LiveServer, type StartOptions } from './live-server.ts';

const model = fixture('shared-state');
const PASSWORD = 'Operator-password-1';
const OTHER_PASSWORD = 'Operator-password-2';
const KEY = 'Decision-key-0123456789';
const PUBLISHED = 'adminadmin';

/** The longest wait for a line of the log. */
const BOUNDED = { timeout: 60_000 };

const OPEN = ['/health', '/livez', '/readyz'];
const PAGES = ['/', '/recipes', '/stats', '/metrics'];

const basic = (password: string, name = 'admin') => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

/** Returns the statuses of the operator's pages, called with a password, or with none. */
async function pages(server: LiveServer, password?: string): Promise<number[]> {
  const headers = password === undefined ? {} : { Authorization: basic(password) };
  const answers = await Promise.all(PAGES.map((path) => server.get(path, headers)));
  return answers.map(({ status }) => status);
}

const ALL_OPEN = PAGES.map(() => 200);
const ALL_CLOSED = PAGES.map(() => 401);

function start(t: TestContext, options: StartOptions) {
  return LiveServer.start(t, { model, ...options });
}

function kept(folder: string): string {
  return readFileSync(join(folder, 'svc.password'), 'utf8').trim();
}

suite('the dashboard password', { concurrency: 2 }, () => {
  test("is wanted of every page of the operator's, with any name, in Basic auth or else in the query", async (t) => {
    const server = await start(t, { env: { SVC_PASSWORD: PASSWORD } });
    for (const path of PAGES) {
      const query = `${path}?password=${PASSWORD}`;
      for (const name of ['admin', 'anybody', '']) {
        assert.equal((await server.get(path, { Authorization: basic(PASSWORD, name) })).status, 200, path);
      }
      assert.equal((await server.get(query)).status, 200, path);
      for (const [address, headers] of [
        [path, {}],
        [path, { Authorization: basic('wrong') }],
        [`${path}?password=wrong`, {}],
        [query, { Authorization: basic('wrong') }],
      ] as const) {
        const { status, headers: received, text } = await server.get(address, headers);
        const got = [status, received['www-authenticate'], text];
        assert.deepEqual(got, [401, 'Basic realm="svc"', 'missing or wrong password'], address);
      }
    }
    for (const path of OPEN) assert.equal((await server.get(path)).status, 200, path);
  });

  test('is that of svc.json, and that of SVC_PASSWORD wins', async (t) => {
    const cwd = folderWithConfig(t, { password: PASSWORD });
    const first = await start(t, { cwd });
    assert.deepEqual(await pages(first, PASSWORD), ALL_OPEN);
    const second = await start(t, { cwd, env: { SVC_PASSWORD: OTHER_PASSWORD } });
    assert.deepEqual(await pages(second, PASSWORD), ALL_CLOSED);
    assert.deepEqual(await pages(second, OTHER_PASSWORD), ALL_OPEN);
    assert.deepEqual(readdirSync(cwd), ['svc.json']);
  });

  test('has no default: it is generated at the first start, on loopback too, and kept', async (t) => {
    const cwd = temporaryFolder(t);
    const first = await start(t, { cwd });
    const password = kept(cwd);
    assert.match(password, /^[0-9a-f]{48}$/);
    if (process.platform !== 'win32') assert.equal(statSync(join(cwd, 'svc.password')).mode & 0o777, 0o600);
    assert.deepEqual(await pages(first), ALL_CLOSED);
    for (const guess of ['', 'svc', 'admin', 'password', PUBLISHED]) {
      assert.deepEqual(await pages(first, guess), ALL_CLOSED);
    }
    assert.deepEqual(await pages(first, password), ALL_OPEN);
    const second = await start(t, { cwd });
    assert.equal(kept(cwd), password);
    assert.deepEqual(await pages(second, password), ALL_OPEN);
  });

  for (const [place, options] of [
    ['svc.json', { settings: { password: PUBLISHED } }],
    ['SVC_PASSWORD', { settings: {}, env: { SVC_PASSWORD: PUBLISHED } }],
  ] as const) {
    test(`that was published once counts as none in ${place}: one is generated`, BOUNDED, async (t) => {
      const cwd = folderWithConfig(t, options.settings);
      const server = await start(t, { ...options, cwd });
      assert.deepEqual(await pages(server, PUBLISHED), ALL_CLOSED);
      assert.deepEqual(await pages(server, kept(cwd)), ALL_OPEN);
      await server.process.logged(/the published default password counts as none/);
    });
  }

  for (const [place, options] of [
    ['allow_no_password', { settings: { allow_no_password: true, password: PASSWORD } }],
    ['SVC_ALLOW_NO_PASSWORD', { settings: {}, env: { SVC_ALLOW_NO_PASSWORD: '1' } }],
  ] as const) {
    test(`is off with ${place}: nothing is checked and nothing generated`, BOUNDED, async (t) => {
      const cwd = folderWithConfig(t, options.settings);
      const server = await start(t, { ...options, cwd });
      assert.deepEqual(await pages(server), ALL_OPEN);
      assert.deepEqual(await pages(server, 'wrong'), ALL_OPEN);
      assert.equal((await server.get('/stats?password=wrong')).status, 200);
      assert.deepEqual(readdirSync(cwd), ['svc.json']);
      await server.process.logged(/Dashboard password off: allow_no_password is on/);
    });
  }

  test('in a file of another start is read and left as it is', async (t) => {
    const [cwd, data] = [temporaryFolder(t), temporaryFolder(t)];
    writeFileSync(join(cwd, 'svc.password'), `${PASSWORD}\n`, { mode: 0o600 });
    // The file in the second folder does not count, because the first folder can be written to.
    writeFileSync(join(data, 'svc.password'), `${OTHER_PASSWORD}\n`, { mode: 0o600 });
    const server = await start(t, { cwd, env: { SVC_DATA: data } });
    assert.deepEqual(await pages(server, PASSWORD), ALL_OPEN);
    assert.deepEqual(await pages(server, OTHER_PASSWORD), ALL_CLOSED);
    assert.equal(readFileSync(join(cwd, 'svc.password'), 'utf8'), `${PASSWORD}\n`);
  });
});

test('a log gets the name of a generated file and a fingerprint', BOUNDED, async (t) => {
  const cwd = temporaryFolder(t);
  const server = await start(t, { cwd, listen: '0.0.0.0:0' });
  for (const name of ['svc.password', 'svc.api-key']) {
    const pattern = new RegExp(`"msg":"[^"]* generated: [^"]*${name.replace('.', '\\.')}, sha256 [0-9a-f]{12}"`);
    await server.process.logged(pattern);
  }
});

interface Secrets {
  readonly password: string;
  readonly key: string;
}

/** Calls every route with right credentials, with wrong ones and with none, and returns all answers. */
async function everyAnswer(server: LiveServer, { password, key }: Secrets): Promise<string[]> {
  const recipe = /href="(\/recipes\/[^"]+)"/.exec(
    (await server.get('/recipes', { Authorization: basic(password) })).text,
  );
  const paths = [...OPEN, ...PAGES, recipe?.[1] ?? '', '/v1/models', '/nowhere', '/playground', '/v1/systemone'];
  const credentials = [
    {},
    { Authorization: basic(password) },
    { Authorization: basic(password, password) },
    { Authorization: `Bearer ${key}` },
    { Authorization: basic(`${password}x`) },
    { Authorization: `Bearer ${key}x` },
    { Authorization: `Bearer ${password}` },
    { Authorization: basic(key) },
    { Authorization: password },
    { Cookie: `password=${password}`, Referer: `http://127.0.0.1/?password=${password}`, Accept: 'application/json' },
  ];
  const answers: string[] = [];
  const keep = async (asked: ReturnType<LiveServer['send']>) => {
    const { status, headers, text } = await asked;
    answers.push(JSON.stringify([status, headers]), text);
  };
  const callAll = async (path: string) => {
    for (const headers of credentials) {
      await keep(server.get(path, headers));
      if (['/v1/systemone', '/playground', '/nowhere'].includes(path)) {
        await keep(server.send({ method: 'POST', path, headers, body: THREE_TYPES }));
      }
    }
    await keep(server.get(`${path}?password=${password}`));
    await keep(server.get(`${path}?password=${key}&key=${key}`));
    await keep(server.get(`http://admin:${password}@127.0.0.1:${server.url.port}${path}?password=${password}`));
    await keep(server.get(`http://[${path}?password=${password}`));
    await keep(server.get(`http://a:b:c${path}?password=${password}`));
  };
  // Many wrong guesses are answered late, so the calls are made at once: then the delays do not add up.
  await Promise.all(paths.map(callAll));
  return answers;
}

/** Returns each way in which a secret can be written. */
function spellings(secret: string): string[] {
  const encodings = ['base64', 'base64url', 'hex'] as const;
  // The last characters of an encoding depend on the bytes that follow the secret.
  return [secret, ...encodings.map((encoding) => Buffer.from(secret).toString(encoding).slice(0, -4))];
}

function assertWithout(secrets: Secrets, text: string, where: string): void {
  for (const [name, secret] of Object.entries(secrets)) {
    for (const spelling of [...spellings(secret), basic(secret).slice('Basic '.length)]) {
      assert.ok(!text.includes(spelling), `the ${name} is in ${where}: ${text.slice(0, 2000)}`);
    }
  }
}

/** Returns every file in `folder` except those that are made to hold a secret. */
function otherFiles(folder: string, holders: readonly string[]): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && !holders.includes(entry.name))
    .map((entry) => join(folder, entry.name));
}

suite('no secret is in what the server prints, answers, writes or is called with', { concurrency: 2 }, () => {
  async function search(t: TestContext, cwd: string, env: Readonly<Record<string, string>>, secrets: () => Secrets) {
    const server = await start(t, { cwd, env, listen: '0.0.0.0:0', args: ['--log-level', 'trace'] });
    const known = secrets();
    const { pid = 0 } = server.process;
    const answers = await everyAnswer(server, known);
    const ok = answers.filter((answer) => answer.startsWith('[200,')).length;
    assert.ok(ok > 20, `${ok} of ${answers.length / 2} answers are 200`);
    for (const answer of answers) assertWithout(known, answer, 'an answer');
    if (process.platform === 'linux')
      assertWithout(known, readFileSync(`/proc/${pid}/cmdline`, 'utf8'), 'its arguments');
    server.process.signal('SIGTERM');
    const { stdout, stderr } = await server.process.finished;
    assert.match(stderr, /"path":"\/stats"/);
    assertWithout(known, stdout, 'stdout');
    assertWithout(known, stderr, 'stderr');
    for (const file of otherFiles(cwd, ['svc.password', 'svc.api-key'])) {
      assertWithout(known, readFileSync(file, 'utf8'), file);
    }
  }

  test('when they are set', BOUNDED, async (t) => {
    const secrets = { password: PASSWORD, key: KEY };
    await search(t, temporaryFolder(t), { SVC_PASSWORD: PASSWORD, SVC_API_KEY: KEY }, () => secrets);
  });

  test('when they are generated', BOUNDED, async (t) => {
    const cwd = temporaryFolder(t);
    await search(t, cwd, {}, () => ({
      password: kept(cwd),
      key: readFileSync(join(cwd, 'svc.api-key'), 'utf8').trim(),
    }));
  });
});
