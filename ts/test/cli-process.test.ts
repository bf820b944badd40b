import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { plainLine, seenLine } from '../src/log/log.ts';
import { fixture } from './addon/model-folders.ts';
import { runSvc, SvcProcess } from './svc-process.ts';
import { folderWithConfig, temporaryFolder } from './temporary-folder.ts';

const KEY = 'a-key-of-at-least-sixteen';
const LISTEN = ['--listen', '127.0.0.1:0'];
const QUESTION = 'team: Which team? = 10 | 9 | billing: payments';

/** A model that loads in less time than the embedded one, for what does not depend on it. */
const TINY = { SVC_MODEL: fixture('marker') };

/** Returns a server with its model loaded. */
async function started(t: TestContext, cwd: string, env: Readonly<Record<string, string>> = {}) {
  const svc = new SvcProcess(t, ['serve', ...LISTEN], { cwd, env });
  await svc.logged(/model .* loaded/);
  return { svc, url: await svc.url() };
}

const NO_SERVER = 'must be the address of a server, such as http://127.0.0.1:21118 or unix:/run/svc/svc.sock';

suite('svc', { concurrency: 2 }, () => {
  test('--version prints the version of the package', async (t) => {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    const { code, stdout } = await runSvc(t, ['--version'], { cwd: temporaryFolder(t) });
    assert.equal(stdout, `${(JSON.parse(text) as { version: string }).version}\n`);
    assert.equal(code, 0);
  });

  test('-v, -V and version print the same', async (t) => {
    const cwd = temporaryFolder(t);
    const { stdout } = await runSvc(t, ['--version'], { cwd });
    for (const args of [['-v'], ['-V'], ['version']]) {
      assert.deepEqual(await runSvc(t, args, { cwd }), { code: 0, signal: null, stdout, stderr: '' });
    }
  });

  for (const args of [['--help'], ['help', 'ask'], ['help', 'model', 'check'], ['ask', '--help'], ['serve', '-h']]) {
    test(`${args.join(' ')} prints help`, async (t) => {
      const { code, stdout, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t) });
      assert.match(stdout, /^Usage: svc/);
      assert.equal(stderr, '');
      assert.equal(code, 0);
    });
  }

  for (const [args, line] of [
    [['sevre'], 'unknown command "sevre" (Did you mean serve?); see svc --help'],
    [['--prot', '1'], "unknown option '--prot' (Did you mean --port?); see svc serve --help"],
    [['ask', '--stat', 'x'], "unknown option '--stat' (Did you mean --state?); see svc ask --help"],
    [['help', 'x'], 'unknown command "x"; see svc --help'],
    [['--threads', 'x'], '--threads: must be a whole number from 0 to 256'],
    [['ask'], 'what is it about? Give --state TEXT, or a request file; see svc ask --help'],
    [['ask', '--state', 'x'], 'nothing is asked: give --question TEXT; see svc ask --help'],
    [
      ['ask', 'a', '--state', 'x'],
      'a request file holds the state and the questions: leave out --state and --question',
    ],
    [
      ['ask', '--state', 'x', '--question', '= a'],
      '--question "= a": it has no text in front of =; see svc ask --help',
    ],
    [['ask', '-i', '--state', '-'], '--interactive reads questions from stdin, so the state cannot come from it'],
    [['batch', 'rows.csv'], 'what is asked? Give --questions FILE; see svc batch --help'],
    [
      ['batch', 'rows', '--questions', 'q'],
      'rows: ends in none of .jsonl, .ndjson, .csv, .tsv, .parquet; give --format',
    ],
    [['tune', '--out', 'x'], 'which labelled rows? Give --data FILE; see svc tune --help'],
    [['gate', '--no-key', '--port', 'x'], '--port: must be a whole number from 0 to 65535'],
    [['mcp', '--listen', '0.0.0.0:21120'], '--listen: must be a loopback address, such as 127.0.0.1:21120'],
    [['bench', 'localhost'], `URL: ${NO_SERVER}`],
    [['completion', 'tcsh'], 'there is no completion for "tcsh": bash, zsh and fish have one'],
    [['ask', '-', '--url', 'localhost'], `--url: ${NO_SERVER}`],
  ] as const) {
    test(`${args.join(' ')} is refused with one line and exit code 2`, async (t) => {
      const { code, stdout, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t) });
      assert.equal(stderr, `${line}\n`);
      assert.equal(stdout, '');
      assert.equal(code, 2);
    });
  }

  test('a file that is not there is no wrong usage: exit code 1', async (t) => {
    const { code, stderr } = await runSvc(t, ['ask', 'no.json'], { cwd: temporaryFolder(t) });
    assert.deepEqual([code, stderr], [1, 'no.json: cannot be read (ENOENT)\n']);
  });
});

suite('svc serve', { concurrency: 2 }, () => {
  test('makes svc.json and svc.password, and answers by the embedded model', async (t) => {
    const cwd = temporaryFolder(t);
    const { url } = await started(t, cwd);
    assert.deepEqual(readdirSync(cwd).sort(), ['svc.json', 'svc.password']);
    const health = await fetch(`${url}/health`);
    assert.equal(health.status, 200);
    const body = '{"state":"I was charged twice.","questions":{"q":{"type":"noul","instructions":"Is it?"}}}';
    const decision = await fetch(`${url}/v1/systemone`, { method: 'POST', body });
    assert.equal(decision.status, 200);
    assert.match(await decision.text(), /^\{"model":"svc","answers":\{"q":\{"type":"noul","noul":\d/);
  });

  test('says whether the key is required or off', async (t) => {
    const { svc } = await started(t, temporaryFolder(t), TINY);
    await svc.logged(/API key off: 127\.0\.0\.1 is loopback and no key is set/);
    const guarded = await started(t, temporaryFolder(t), { ...TINY, SVC_API_KEY: KEY });
    const [line] = await guarded.svc.logged(/.*API key required: set in SVC_API_KEY.*/);
    assert.ok(!line.includes(KEY));
    const answer = await fetch(`${guarded.url}/v1/systemone`, { method: 'POST', body: '{}' });
    assert.equal(answer.status, 401);
  });

  test('tells warnings of the settings', async (t) => {
    const { svc } = await started(t, folderWithConfig(t, { theads: 1 }), TINY);
    await svc.logged(/"level":40.*svc\.json: unknown key \\"theads\\"/);
  });

  for (const [settings, env, line] of [
    [{ threads: 'x' }, {}, 'svc.json: threads: must be a whole number from 0 to 256'],
    ['{', {}, 'svc.json: invalid JSON at line 1, column 2: close brace expected'],
    [{}, { SVC_ALLOW_NO_API_KEY: 'yes' }, 'SVC_ALLOW_NO_API_KEY: must be 1, true, 0 or false'],
  ] as const) {
    test(`with wrong settings is one line and exit code 1: ${line}`, async (t) => {
      const { code, stderr } = await runSvc(t, [...LISTEN], { cwd: folderWithConfig(t, settings), env });
      assert.equal(stderr, `${line}\n`);
      assert.equal(code, 1);
    });
  }

  test('with a key that is too short ends with that line and exit code 1', async (t) => {
    const { code, stderr } = await runSvc(t, LISTEN, { cwd: temporaryFolder(t), env: { SVC_API_KEY: 'short' } });
    assert.equal(stderr.trim().split('\n').at(-1), 'api key from SVC_API_KEY is 5 characters; use at least 16');
    assert.equal(code, 1);
  });

  test('on a port that is taken ends with a line that names it and exit code 1', async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    t.after(() => other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, stderr } = await runSvc(t, ['--listen', address], { cwd: temporaryFolder(t) });
    assert.ok(stderr.trim().split('\n').at(-1)?.startsWith(`cannot listen on ${address}: `), stderr);
    assert.equal(code, 1);
  });

  test('on the port of another server of its kind says so', async (t) => {
    const { url } = await started(t, temporaryFolder(t), TINY);
    const { host } = new URL(url);
    const { code, stderr } = await runSvc(t, ['--listen', host], { cwd: temporaryFolder(t) });
    const who = 'the port is in use by a server of svc, whose model is "tiny-marker"';
    const line = `cannot listen on ${host}: ${who}; choose another address with listen, --listen or --port`;
    assert.deepEqual([code, stderr.trim().split('\n').at(-1)], [1, line]);
  });

  test('takes its port from --port, and its host from --host', async (t) => {
    const cwd = folderWithConfig(t, { listen: '192.0.2.1:1' });
    const svc = new SvcProcess(t, ['--host', '127.0.0.1', '--port', '0'], { cwd });
    assert.match(await svc.url(), /^http:\/\/127\.0\.0\.1:\d+$/);
  });

  test('without its model ends with a line that names it and exit code 1', async (t) => {
    const cwd = temporaryFolder(t);
    const { code, stderr } = await runSvc(t, [...LISTEN, '--model', 'nowhere'], { cwd });
    const last = stderr.trim().split('\n').at(-1) ?? '';
    assert.ok(last.includes(join(cwd, 'nowhere')) && !last.startsWith('{'), stderr);
    assert.doesNotMatch(stderr, /^ +at /m);
    assert.equal(code, 1);
  });

  // No machine has the address 192.0.2.1, so the key is made and then listening fails.
  test('logs file and fingerprint of the key that it makes, into a pipe never the key', async (t) => {
    const cwd = temporaryFolder(t);
    const { code, stdout, stderr } = await runSvc(t, ['--listen', '192.0.2.1:0'], { cwd });
    const key = readFileSync(join(cwd, 'svc.api-key'), 'utf8').trim();
    assert.match(stderr, /API key generated: [^"]*svc\.api-key, sha256 [0-9a-f]{12}"/);
    assert.ok(!stderr.includes(key) && !stdout.includes(key));
    assert.equal(code, 1);
  });

  for (const level of ['warn', 'silent']) {
    test(`logs at the level ${level}, too, who may come in and what it makes for that`, async (t) => {
      const cwd = temporaryFolder(t);
      const { stderr } = await runSvc(t, ['--listen', '192.0.2.1:0', '--log-level', level], { cwd });
      for (const [title, file] of [
        ['API key', 'svc\\.api-key'],
        ['Dashboard password', 'svc\\.password'],
      ]) {
        assert.match(stderr, new RegExp(`"${title} generated: [^"]*${file}, sha256 [0-9a-f]{12}"`));
        // One line says all of it.
        assert.equal(stderr.match(new RegExp(`"${title} `, 'g'))?.length, 1);
      }
      const again = await runSvc(t, ['--listen', '192.0.2.1:0', '--log-level', level], { cwd });
      assert.match(again.stderr, /"API key required: kept in [^"]*svc\.api-key, sha256 [0-9a-f]{12}"/);
      assert.doesNotMatch(stderr, /settings: /);
    });
  }
});

// Windows has no signals: killing a process there ends it at once.
if (process.platform !== 'win32') {
  suite('a signal', { concurrency: 2 }, () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      test(`${signal} ends the server with 0`, async (t) => {
        const { svc } = await started(t, temporaryFolder(t), TINY);
        svc.signal(signal);
        assert.equal((await svc.finished).code, 0);
      });
    }

    test('while the model is loading ends the server with 0', async (t) => {
      const svc = new SvcProcess(t, LISTEN, { cwd: temporaryFolder(t) });
      await svc.url();
      svc.signal('SIGTERM');
      assert.equal((await svc.finished).code, 0);
    });

    for (const [signal, code] of [
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const) {
      test(`${signal} a second time ends the server at once with ${code}`, async (t) => {
        const { svc } = await started(t, temporaryFolder(t), { ...TINY, SVC_DRAIN_DELAY_MS: '60000' });
        svc.signal(signal);
        await svc.logged(new RegExp(signal));
        await sleep(400);
        svc.signal(signal);
        assert.equal((await svc.finished).code, code);
      });
    }

    test('of Ctrl-C, which npm passes on once more, counts once', async (t) => {
      let code: number | null = null;
      // On a busy machine the second signal may come too late to be that of the same press.
      for (let tries = 0; code !== 0 && tries < 5; tries += 1) {
        const { svc } = await started(t, temporaryFolder(t), { ...TINY, SVC_DRAIN_DELAY_MS: '500' });
        svc.signal('SIGINT');
        await svc.logged(/SIGINT/);
        svc.signal('SIGINT');
        code = (await svc.finished).code;
      }
      assert.equal(code, 0);
    });
  });
}

suite('svc ask', { concurrency: 2 }, () => {
  test('answers in a table, and makes no svc.json', async (t) => {
    const cwd = temporaryFolder(t);
    const { code, stdout, stderr } = await runSvc(t, ['ask', '--state', 'Hello', '--question', QUESTION], { cwd });
    assert.match(stdout, /^team {2}\S+ {2}confidence \d\.\d\d\n( {2}\S+ +[█▏▎▍▌▋▊▉]* +\d+\.\d%\n){3}\n\d+ tokens in/u);
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test('--json prints the answer with the options in the order of the question', async (t) => {
    const args = ['ask', '--json', '--state', '-', '--question', QUESTION];
    const { stdout } = await runSvc(t, args, { cwd: temporaryFolder(t), env: TINY, input: 'Hello' });
    assert.equal((JSON.parse(stdout) as { model: string }).model, 'svc');
    assert.match(stdout, /"probabilities":\{"10":[\d.]+,"9":[\d.]+,"billing":[\d.]+\}/);
    assert.ok(stdout.endsWith('}\n'));
  });

  test('gives a state as text, as a text file, as JSON file and in a request alike', async (t) => {
    const cwd = temporaryFolder(t);
    writeFileSync(join(cwd, 's.txt'), 'Hello');
    writeFileSync(join(cwd, 's.json'), '"Hello"');
    const criteria = '{"10":null,"9":null,"billing":"payments"}';
    const question = `{"type":"choice","instructions":"Which team?","criteria":${criteria}}`;
    writeFileSync(join(cwd, 'r.json'), `{"state":"Hello","questions":{"team":${question}}}`);
    const asked = ['--question', QUESTION];
    const inputs = [
      ['--state', 'Hello', ...asked],
      ['--state', '@s.txt', ...asked],
      ['--state', '@s.json', ...asked],
    ];
    const answers = [...inputs, ['r.json']].map(async (args) => {
      const { stdout } = await runSvc(t, ['ask', '--json', ...args], { cwd, env: TINY });
      return (JSON.parse(stdout) as { answers: unknown }).answers;
    });
    const [first, ...others] = await Promise.all(answers);
    for (const other of others) assert.deepEqual(other, first);
  });

  for (const [name, content, line] of [
    ['s.json', '1},"questions":{"x":1', 's.json: is not valid JSON'],
    ['s.txt', Buffer.from([0x61, 0xff]), 's.txt: is not UTF-8'],
  ] as const) {
    test(`refuses a state that ${line.replace(/^\S+ /, '')}`, async (t) => {
      const cwd = temporaryFolder(t);
      writeFileSync(join(cwd, name), content);
      const { code, stderr } = await runSvc(t, ['ask', '--state', `@${name}`, '--question', 'Is it?'], { cwd });
      assert.equal(stderr, `${line}\n`);
      assert.equal(code, 1);
    });
  }

  test('tells what is wrong with a request in one line', async (t) => {
    const args = ['ask', '--state', 'x', '--question', 'Which? = a | a'];
    const { code, stdout, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t) });
    assert.match(stderr, /^q1: .*twice\n$/);
    assert.equal(stdout, '');
    assert.equal(code, 1);
  });

  test('--url asks a server, with the key of SVC_API_KEY and not that of svc.json', async (t) => {
    const { url } = await started(t, temporaryFolder(t), { ...TINY, SVC_API_KEY: KEY });
    const args = ['ask', '--url', url, '--json', '--state', 'Hello', '--question', QUESTION];
    const cwd = folderWithConfig(t, { api_key: KEY });
    const refused = await runSvc(t, args, { cwd });
    assert.equal(refused.stderr, `${url} answers 401: {"error":"missing or wrong API key"}\n`);
    assert.equal(refused.code, 1);
    const { stdout, code } = await runSvc(t, args, { cwd, env: { SVC_API_KEY: KEY } });
    assert.match(stdout, /^\{"model":"svc",/);
    assert.equal(code, 0);
  });

  test('--url with no server there says so', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const args = ['ask', '--url', `http://127.0.0.1:${port}`, '--state', 'x', '--question', 'Is it?'];
    const { code, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t) });
    assert.equal(stderr, `cannot reach http://127.0.0.1:${port}: ECONNREFUSED\n`);
    assert.equal(code, 1);
  });
});

suite('the log in a pipe', { concurrency: 3 }, () => {
  for (const [args, env, pattern] of [
    [[], {}, /^\{"level":30,"time":"[^"]+","msg":"listening on /m],
    [['--log-format', 'pretty'], {}, /^\d\d:\d\d:\d\d info {2}listening on /m],
    [[], { SVC_LOG_FORMAT: 'pretty' }, /^\d\d:\d\d:\d\d info {2}listening on /m],
  ] as const) {
    test(`with ${JSON.stringify([args, env])}`, async (t) => {
      const options = { cwd: temporaryFolder(t), env: { ...TINY, ...env } };
      const svc = new SvcProcess(t, ['serve', '--listen', '127.0.0.1:0', ...args], options);
      await svc.logged(/listening on/);
      await svc.logged(pattern);
    });
  }
});

suite('the log on a terminal', () => {
  test('is one plain line for each of its JSON lines', () => {
    const time = new Date(2026, 0, 2, 3, 4, 5).toISOString();
    const json = JSON.stringify({ level: 40, time, msg: 'model loaded', device: 'cpu', threads: 2, dirs: ['a'] });
    assert.equal(plainLine(`${json}\n`), '03:04:05 warn  model loaded device=cpu threads=2 dirs=["a"]');
  });

  test('has no character that a terminal takes for a command', () => {
    const json = JSON.stringify({
      level: 30,
      time: new Date().toISOString(),
      msg: 'request',
      path: '/\u001b[2J\u009b1m\r\nx',
    });
    assert.match(plainLine(json), / path=\/\\u001b\[2J\\u009b1m\\u000d\\u000ax$/);
  });

  test('has no character that turns the direction round or is not seen', () => {
    const name = 'a\u202eb\u2066c\u200bd\ufeffe\u2028f\u{e0041}';
    const json = JSON.stringify({
      level: 30,
      time: new Date().toISOString(),
      msg: `model ${name} loaded`,
      dirs: [name],
    });
    const shown = 'a\\u202eb\\u2066c\\u200bd\\ufeffe\\u2028f\\u{e0041}';
    assert.ok(plainLine(json).endsWith(`model ${shown} loaded dirs=["${shown}"]`), plainLine(json));
  });
});

test('a line of the log shows characters that are not seen, and stays the same JSON', () => {
  const line = { level: 30, time: new Date().toISOString(), msg: 'a\u202eb\u200b\ufeffc\u2028 größe 日本 😀' };
  const shown = seenLine(`${JSON.stringify(line)}\n`);
  assert.ok(shown.endsWith('"a\\u202eb\\u200b\\ufeffc\\u2028 größe 日本 😀"}\n'), shown);
  assert.deepEqual(JSON.parse(shown), line);
  assert.match(plainLine(JSON.stringify(line)), /a\\u202eb\\u200b\\ufeffc\\u2028 größe 日本 😀$/);
});
