import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { REPOSITORY } from '../addon/model-folders.ts';
import { freePort } from '../free-port.ts';
import { runSvc, SvcProcess } from '../svc-process.ts';
import { folderWithConfig, temporaryFolder } from '../temporary-folder.ts';
import { until } from '../until.ts';

const MODEL = join(REPOSITORY, 'crates/engine/tests/fixtures/marker');
const DECISION = '{"state":"I was charged twice.","questions":{"q":{"type":"noul","instructions":"Is it?"}}}';

/** Numbers of requests whose lines together are more than a log keeps, and more than a pipe or a socket takes. */
const BEYOND_KEPT = 2500;
const BEYOND_PIPE = 700;
const LONG = { 'x-request-id': 'i'.repeat(128) };
const LONG_PATH = `/${'p'.repeat(300)}`;

interface Program {
  readonly svc: SvcProcess;
  readonly url: string;
  readonly get: (path: string) => Promise<Response>;
  readonly decide: () => Promise<number>;
}

/** Starts `svc` with its log on the descriptor `stderr`, which is closed here, and returns it once it answers. */
async function start(t: TestContext, args: readonly string[], stderr?: number): Promise<Program> {
  const port = await freePort();
  const cwd = folderWithConfig(t, { drain_ms: 5000, password: 'a-password-of-a-test' });
  const svc = new SvcProcess(t, [...args, '--listen', `127.0.0.1:${port}`, '--log-level', 'info'], {
    cwd,
    ...(stderr !== undefined && { stderr }),
  });
  if (stderr !== undefined) closeSync(stderr);
  const url = `http://127.0.0.1:${port}`;
  const authorization = `Basic ${Buffer.from('x:a-password-of-a-test').toString('base64')}`;
  const get = (path: string) => fetch(`${url}${path}`, { headers: { authorization, ...LONG }, signal: limit() });
  const decide = async () => {
    const response = await fetch(`${url}/v1/systemone`, { method: 'POST', body: DECISION, signal: limit() });
    await response.text();
    return response.status;
  };
  const isUp = async () => (await get('/health').catch(() => undefined))?.ok === true;
  let hasEnded = false;
  void svc.exited.then(() => {
    hasEnded = true;
  });
  await until(async () => {
    assert.ok(!hasEnded, 'it goes on');
    return await isUp();
  });
  return { svc, url, get, decide };
}

const serve = (t: TestContext, stderr?: number) => start(t, ['serve', '--device', 'cpu', '--model', MODEL], stderr);

/** Returns the signal of a time-out: an answer that takes longer counts as lost. */
const limit = () => AbortSignal.timeout(20_000);

async function ask({ get }: Program, requests: number): Promise<void> {
  for (let i = 0; i < requests; i += 50) {
    await Promise.all(Array.from({ length: 50 }, async () => (await get(LONG_PATH)).arrayBuffer()));
  }
}

async function lostLines({ get }: Program): Promise<number> {
  const text = await (await get('/metrics')).text();
  return Number(/^svc_log_lines_lost_total (\d+)$/m.exec(text)?.[1]);
}

/** Returns a named pipe. No process reads it until `read` is called, which returns the bytes in it. */
function namedPipe(t: TestContext) {
  const path = join(temporaryFolder(t), 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  t.after(() => closeSync(reader));
  const bytes = Buffer.alloc(2 ** 16);
  const read = (): string => {
    try {
      return bytes.toString('utf8', 0, readSync(reader, bytes, 0, bytes.length, null));
    } catch {
      return '';
    }
  };
  return { writer: openSync(path, constants.O_WRONLY), read };
}

/** Returns the lines of a log, each of which must be whole. */
function parsed(text: string): { msg: string; lost?: number; path?: string }[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

// These tests need the devices and pipes of Linux.
if (process.platform === 'linux') {
  suite('a log that cannot be written', { concurrency: 2 }, () => {
    test('on a full disk ends no server: all is answered, and the lost lines are counted', async (t) => {
      const server = await serve(t, openSync('/dev/full', 'a'));
      assert.equal(await lostLines(server), 0);
      await ask(server, BEYOND_KEPT);
      assert.equal(await server.decide(), 200);
      assert.ok((await lostLines(server)) > 0);
      server.svc.signal('SIGTERM');
      assert.equal((await server.svc.finished).code, 0);
    });

    test('on a full disk ends no gate', async (t) => {
      const server = await serve(t, openSync('/dev/null', 'a'));
      const gate = await start(t, ['gate', '--no-key', '--upstream', server.url], openSync('/dev/full', 'a'));
      await ask(gate, BEYOND_PIPE);
      assert.equal(await gate.decide(), 200);
      gate.svc.signal('SIGTERM');
      assert.equal((await gate.svc.finished).code, 0);
    });

    test('in a pipe that nobody reads holds up no answer, and tells what was lost when it is read again', async (t) => {
      const { writer, read } = namedPipe(t);
      const server = await serve(t, writer);
      await ask(server, BEYOND_KEPT);
      assert.equal((await server.get('/livez')).status, 200);
      assert.equal(await server.decide(), 200);
      const lost = await lostLines(server);
      assert.ok(lost > 0);
      let text = '';
      await until(() => {
        text += read();
        return text.includes('the log works again');
      });
      await until(async () => {
        await server.get('/readyz');
        text += read();
        return text.includes('/readyz');
      });
      const lines = parsed(text);
      const told = lines.filter((line) => line.msg.includes('works again'));
      assert.equal(told.length, 1);
      assert.ok((told[0]?.lost ?? 0) >= lost);
      server.svc.signal('SIGTERM');
      assert.equal((await server.svc.finished).code, 0);
    });

    test('in a pipe that nobody reads ends no gate, nor its end', async (t) => {
      const server = await serve(t, openSync('/dev/null', 'a'));
      const { writer } = namedPipe(t);
      const gate = await start(t, ['gate', '--no-key', '--upstream', server.url], writer);
      await ask(gate, BEYOND_PIPE);
      assert.equal(await gate.decide(), 200);
      gate.svc.signal('SIGTERM');
      assert.equal((await gate.svc.finished).code, 0);
    });

    test('in a pipe that another process has set to wait holds up no answer', async (t) => {
      const { writer } = namedPipe(t);
      // At its end, Node sets a descriptor back to the mode that it had at the start: here, one that blocks.
      const program = 'void process.stderr; process.stdin.on("end", () => process.exit()).resume(); console.log("up")';
      const other = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', writer] });
      t.after(() => other.kill());
      const exited = once(other, 'exit');
      await once(other.stdout as Readable, 'data');
      const server = await serve(t, writer);
      other.stdin?.end();
      await exited;
      await ask(server, BEYOND_PIPE);
      assert.equal(await server.decide(), 200);
    });

    test('to a socket that nobody reads, as the journal of a machine may be, holds up no answer', async (t) => {
      const server = await serve(t);
      server.svc.holdLog();
      await ask(server, BEYOND_PIPE);
      assert.equal(await server.decide(), 200);
      server.svc.signal('SIGTERM');
      const code = await Promise.race([server.svc.exited, sleep(20_000, 'none', { ref: false })]);
      assert.equal(code, 0);
    });

    test('for a while is whole at the end, when its reader reads again', async (t) => {
      const { writer, read } = namedPipe(t);
      const server = await serve(t, writer);
      // These lines are more than a pipe takes, and less than the log keeps.
      for (let i = 0; i < 400; i++) await (await server.get(LONG_PATH)).arrayBuffer();
      server.svc.signal('SIGTERM');
      let text = '';
      const reading = setInterval(() => {
        text += read();
      }, 1);
      assert.equal((await server.svc.finished).code, 0);
      clearInterval(reading);
      for (let part = read(); part !== ''; part = read()) text += part;
      const lines = parsed(text);
      assert.equal(lines.filter((line) => line.path === LONG_PATH.slice(0, 200)).length, 400);
      assert.match(lines.at(-1)?.msg ?? '', /^SIGTERM/);
    });

    test('does not hide why a start fails, nor does a full disk change its exit code', async (t) => {
      const cwd = temporaryFolder(t);
      const args = ['serve', '--listen', '127.0.0.1:0', '--model', join(cwd, 'nothing')];
      const { stderr, code } = await runSvc(t, args, { cwd });
      assert.match(stderr, /nothing/);
      assert.equal(code, 1);
      const full = openSync('/dev/full', 'a');
      assert.equal((await runSvc(t, args, { cwd, stderr: full })).code, 1);
      closeSync(full);
    });
  });

  suite('a log file', () => {
    test('that is opened to be appended to is copied and cut to nothing while the server goes on', async (t) => {
      const file = join(temporaryFolder(t), 'log');
      const server = await serve(t, openSync(file, 'a'));
      await server.get('/before');
      await until(() => readFileSync(file, 'utf8').includes('/before'));
      const before = parsed(readFileSync(file, 'utf8'));
      truncateSync(file);
      await server.get('/after');
      await until(() => readFileSync(file, 'utf8').includes('/after'));
      assert.equal(before.at(-1)?.path, '/before');
      assert.deepEqual(
        parsed(readFileSync(file, 'utf8')).map((line) => line.path),
        ['/after'],
      );
    });
  });
}
