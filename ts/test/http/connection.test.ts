import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Refusal } from '../../src/refusal.ts';
import { connectionLimit, MAX_PIPELINED } from '../../src/server/connections.ts';
import { DEFAULT_TIMEOUTS } from '../../src/server/http-server.ts';
import { runCommand } from '../addon/program.ts';
import { ANSWER, REPLY } from '../fake-engine.ts';
import { until } from '../until.ts';
import { DECISION, rawHeader, startServer, Wire, waitAtLeast } from './server-under-test.ts';

const HOST = 'Host: localhost\r\n';
const POST = `POST /v1/systemone HTTP/1.1\r\n${HOST}Content-Length: ${DECISION.length}\r\n`;
const GET = `GET /livez HTTP/1.1\r\n${HOST}`;

/** Fails unless an answer of the server itself is complete: one line, both ids, and the end of the connection. */
function isRefusal(answer: string, status: number, message: string): void {
  const [head, body] = answer.split('\r\n\r\n');
  assert.match(answer, new RegExp(`^HTTP/1.1 ${status} [A-Z]`));
  assert.equal(body, message);
  assert.equal(rawHeader(`${head}\r\n`, 'content-length'), String(message.length));
  assert.equal(rawHeader(`${head}\r\n`, 'connection'), 'close');
  assert.match(rawHeader(`${head}\r\n`, 'x-request-id') ?? '', /^[!-~]{1,128}$/);
  assert.equal(rawHeader(`${head}\r\n`, 'x-typesafe-request-id'), rawHeader(`${head}\r\n`, 'x-request-id'));
}

suite('what is not HTTP', () => {
  for (const [what, bytes] of [
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a header without a colon', `GET / HTTP/1.1\r\n${HOST}nonsense\r\n\r\n`],
    [
      'both lengths at once',
      `POST /v1/systemone HTTP/1.1\r\n${HOST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`,
    ],
    ['a length that is no number', `POST /v1/systemone HTTP/1.1\r\n${HOST}Content-Length: two\r\n\r\n`],
    ['a target that is no URL', `GET http://[/stats?password=x HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`],
    [
      'a target with a port that is none',
      `GET http://a:b:c/stats?password=x HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
    ],
  ] as const) {
    test(`${what} gets 400, one line, and is logged without what it was`, async (t) => {
      const { port, log } = await startServer(t);
      const wire = await Wire.open(t, port);
      wire.send(bytes);
      const answer = await wire.ends();
      isRefusal(answer, 400, 'malformed HTTP request');
      assert.deepEqual(
        log.map(({ level, status, code, id }) => ({ level, status, code, id })),
        [{ level: 30, status: 400, code: 'bad_request', id: rawHeader(answer, 'x-request-id') }],
      );
    });
  }

  test('headers that are too large get 431', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`${GET}X-Big: ${'a'.repeat(17_000)}\r\n\r\n`);
    isRefusal(await wire.ends(), 431, 'request headers too large');
  });

  test("a broken chunk gets 400 with the request's own id, and the engine is not asked", async (t) => {
    const { port, engine } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(
      `POST /v1/systemone HTTP/1.1\r\n${HOST}x-request-id: mine\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n`,
    );
    const answer = await wire.ends();
    isRefusal(answer, 400, 'malformed HTTP request');
    assert.equal(rawHeader(answer, 'x-request-id'), 'mine');
    assert.equal(engine.calls.length, 0);
  });

  test('after a good request does not cost its answer', async (t) => {
    const { port, engine } = await startServer(t);
    const release = engine.hold();
    const wire = await Wire.open(t, port);
    wire.send(`${POST}\r\n${DECISION}nonsense\r\n\r\n`);
    await engine.called();
    // The engine gets the request when its last byte has arrived; the bytes behind it are parsed in the same turn.
    await new Promise(setImmediate);
    release();
    const answer = await wire.ends();
    assert.match(answer, /^HTTP\/1.1 200 OK\r\n/);
    assert.equal(rawHeader(answer, 'connection'), 'close');
    assert.ok(answer.endsWith(ANSWER));
  });

  test('after an answered request gets its own 400', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`${GET}\r\n`);
    const first = await wire.receives('\r\nok');
    wire.send('nonsense\r\n\r\n');
    isRefusal((await wire.ends()).slice(first.length), 400, 'malformed HTTP request');
  });

  test('and a caller who ends in the middle of the headers get no answer and no error in the log', async (t) => {
    const { port, log, get } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send('GET /livez HTTP/1.1\r\nHos');
    wire.socket.end();
    assert.equal(await wire.ends(), '');
    await get('/livez');
    assert.deepEqual(
      log.map(({ level, path }) => ({ level, path })),
      [{ level: 30, path: '/livez' }],
    );
  });
});

/**
 * Time-outs that are short enough for a test to wait for, and long enough that a busy machine reads a request before
 * them if it is sent at once.
 */
const SHORT = { headersMs: 300, bodyMs: 400 };

suite('time-outs', { concurrency: true, timeout: 30_000 }, () => {
  test('headers that do not arrive in time get 408', async (t) => {
    const { headersMs } = SHORT;
    const { port } = await startServer(t, { timeouts: { headersMs, bodyMs: 10_000 } });
    const startMs = performance.now();
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: loc');
    isRefusal(await wire.ends(), 408, 'headers did not arrive within 0.3 s');
    // This is long before the time-out of a body.
    assert.ok(performance.now() - startMs < 5000);
  });

  test("a body that does not arrive in time gets 408 with the request's own id", async (t) => {
    const { port, engine, log } = await startServer(t, { timeouts: SHORT });
    const wire = await Wire.open(t, port);
    wire.send(`${POST}x-request-id: mine\r\n\r\n{`);
    const answer = await wire.ends();
    isRefusal(answer, 408, 'body did not arrive within 0.4 s');
    assert.equal(rawHeader(answer, 'x-request-id'), 'mine');
    assert.equal(engine.calls.length, 0);
    assert.deepEqual(
      log.map(({ status, code }) => ({ status, code })),
      [{ status: 408, code: 'body_timeout' }],
    );
  });

  for (const [framing, first, drop] of [
    ['Content-Length: 900', '', 'x'],
    ['Transfer-Encoding: chunked', '', '1\r\nx\r\n'],
    ['Transfer-Encoding: chunked', '1;', 'x'],
  ] as const) {
    test(`bound a body that drips (${framing}, ${first || 'x'})`, async (t) => {
      const { port, engine } = await startServer(t, { timeouts: SHORT });
      const wire = await Wire.open(t, port);
      wire.send(`POST /v1/systemone HTTP/1.1\r\n${HOST}${framing}\r\n\r\n${first}`);
      const timer = setInterval(() => wire.socket.writable && wire.send(drop), 10);
      t.after(() => clearInterval(timer));
      isRefusal(await wire.ends(), 408, 'body did not arrive within 0.4 s');
      assert.equal(engine.calls.length, 0);
    });
  }

  test('bound the rest of a body that was refused, without a second answer', async (t) => {
    const { port } = await startServer(t, { timeouts: SHORT });
    const wire = await Wire.open(t, port);
    wire.send(`POST /nothing HTTP/1.1\r\n${HOST}Content-Length: 10\r\n\r\n{`);
    const answer = await wire.ends();
    assert.equal(answer.split('HTTP/1.1').length, 2);
    assert.match(answer, /^HTTP\/1.1 404 /);
  });

  test('do not count the time that the engine takes', async (t) => {
    const { port, engine } = await startServer(t, { timeouts: SHORT });
    const release = engine.hold();
    const wire = await Wire.open(t, port);
    wire.send(`${POST}\r\n${DECISION}`);
    await engine.called();
    await waitAtLeast(2 * SHORT.bodyMs);
    release();
    assert.match(await wire.receives(ANSWER), /^HTTP\/1.1 200 OK\r\n/);
  });

  test('end a connection on which nothing was asked without an answer', async (t) => {
    const { port, log } = await startServer(t, { timeouts: { headersMs: 40 } });
    const wire = await Wire.open(t, port);
    assert.equal(await wire.ends(), '');
    assert.deepEqual(log, []);
  });

  test('end an idle connection after the time that keep-alive allows', async (t) => {
    const { port } = await startServer(t, { timeouts: { keepAliveMs: 50 } });
    const startMs = performance.now();
    const wire = await Wire.open(t, port);
    wire.send(`${GET}\r\n`);
    assert.match(await wire.ends(), /\r\n\r\nok$/);
    // Node allows five seconds where it is not told otherwise.
    assert.ok(performance.now() - startMs < 5000);
  });

  test('are 10 s for headers and 30 s for a body, checked every second', () => {
    const { headersMs, bodyMs, checkMs } = DEFAULT_TIMEOUTS;
    assert.deepEqual([headersMs, bodyMs, checkMs], [10_000, 30_000, 1_000]);
  });

  test('let load balancers keep a connection for 60 s', async (t) => {
    const { get } = await startServer(t, { timeouts: DEFAULT_TIMEOUTS });
    assert.equal((await get('/livez', { Connection: 'keep-alive' })).headers['keep-alive'], 'timeout=65');
  });
});

suite('a connection', () => {
  test('takes one request after the other', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    for (const count of [1, 2, 3]) {
      wire.send(`${POST}\r\n${DECISION}`);
      await wire.receives(ANSWER, count);
    }
  });

  test('takes requests before the earlier are answered, and answers in their order', async (t) => {
    const { port, engine } = await startServer(t);
    const release = engine.hold();
    const wire = await Wire.open(t, port);
    wire.send(`${POST}x-request-id: first\r\n\r\n${DECISION}${GET}x-request-id: second\r\n\r\n`);
    await engine.called();
    release();
    const received = await wire.receives('\r\nok');
    assert.deepEqual(
      [...received.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id),
      ['first', 'second'],
    );
    assert.ok(received.indexOf(ANSWER) < received.indexOf('second'));
  });

  test('that breaks with several requests on it fires the signal of each', async (t) => {
    const { port, engine } = await startServer(t);
    engine.hold();
    const wire = await Wire.open(t, port);
    wire.send(`${POST}\r\n${DECISION}${POST}\r\n${DECISION}`);
    await engine.called(1);
    wire.socket.destroy();
    await until(() => engine.calls.every(({ signal }) => signal.aborted));
  });

  test('takes a body in chunks', async (t) => {
    const { port, engine } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`POST /v1/systemone HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`);
    for (const byte of DECISION) wire.send(`1\r\n${byte}\r\n`);
    wire.send('0\r\n\r\n');
    await wire.receives(ANSWER);
    assert.equal(engine.calls[0]?.body.toString(), DECISION);
  });

  test('closes after an HTTP/1.0 request', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`POST /v1/systemone HTTP/1.0\r\nContent-Length: ${DECISION.length}\r\n\r\n${DECISION}`);
    const answer = await wire.ends();
    assert.match(answer, /^HTTP\/1.1 200 OK\r\n/);
    assert.equal(rawHeader(answer, 'content-length'), String(ANSWER.length));
    assert.ok(answer.endsWith(ANSWER));
  });

  test('stays open after an HTTP/1.0 request that asks for it', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    const keep = 'GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n';
    wire.send(keep);
    assert.match(await wire.receives('\r\nok'), /\r\nConnection: keep-alive\r\n/);
    wire.send(keep);
    await wire.receives('\r\nok', 2);
  });

  test('is told to go on when the caller expects it', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`${POST}Expect: 100-continue\r\n\r\n`);
    assert.match(await wire.receives('\r\n\r\n'), /^HTTP\/1.1 100 Continue\r\n\r\n$/);
    wire.send(DECISION);
    assert.match(await wire.receives(ANSWER), /\r\n\r\nHTTP\/1.1 200 OK\r\n/);
  });

  test('ignores an expectation that is not known', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`${POST}Expect: miracles\r\n\r\n${DECISION}`);
    assert.match(await wire.receives(ANSWER), /^HTTP\/1.1 200 OK\r\n/);
  });

  test('stays HTTP when the caller would rather speak another protocol', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send(`${GET}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`);
    assert.match(await wire.receives('\r\nok'), /^HTTP\/1.1 200 OK\r\n/);
  });

  test('that breaks while an answer is written is no error in the log', async (t) => {
    const { engine, port, log, get } = await startServer(t);
    engine.answer = () => ({ ...REPLY, body: Buffer.alloc(50 * 2 ** 20) });
    const wire = await Wire.open(t, port);
    wire.socket.once('data', () => wire.socket.resetAndDestroy());
    wire.send(`${POST}\r\n${DECISION}`);
    assert.match(await wire.ends(), /^HTTP\/1.1 200 OK\r\n/);
    await get('/livez');
    assert.ok(log.length >= 2);
    assert.ok(log.every(({ level }) => level <= 30));
  });
});

suite('an answer that is whole', () => {
  const LONG = { ...REPLY, body: Buffer.alloc(2 ** 24, 'x') };

  test('and is not taken ends its connection after request_timeout_ms, and the log says why', async (t) => {
    const { port, engine, log } = await startServer(t, { config: { requestTimeoutMs: 100 } });
    engine.answer = () => LONG;
    const wire = await Wire.open(t, port);
    wire.socket.pause();
    wire.send(`${POST}x-request-id: long\r\n\r\n${DECISION}`);
    await until(() => log.some(({ code }) => code === 'answer_timeout'));
    const why = 'connection closed: the caller took none of its answer for 100 ms (request_timeout_ms)';
    assert.deepEqual(
      log.filter(({ level }) => level === 40).map(({ id, msg }) => [id, msg]),
      [['long', why]],
    );
    wire.socket.resume();
    assert.ok((await wire.ends()).length < LONG.body.length);
  });

  test('may be taken a little at a time, and the next one made for longer than that', async (t) => {
    const { port, engine } = await startServer(t, { config: { requestTimeoutMs: 500 } });
    engine.answer = () => LONG;
    const wire = await Wire.open(t, port);
    wire.socket.on('data', () => {
      wire.socket.pause();
      setTimeout(() => wire.socket.resume(), 3);
    });
    wire.send(`${POST}\r\n${DECISION}`);
    await wire.receives('x'.repeat(1000));
    const release = engine.hold();
    wire.send(`${POST}\r\n${DECISION}`);
    await until(() => wire.received.length > LONG.body.length);
    await new Promise((resolve) => setTimeout(resolve, 800));
    release();
    await wire.receives(ANSWER);
  });
});

suite('an idle connection', () => {
  test('keeps neither the body of its latest request nor the answer', async (t) => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { port, engine } = await startServer(t, { config: { maxBodyBytes: 2 ** 20 } });
    const held: WeakRef<object>[] = [];
    engine.answer = ({ body }) => {
      const reply = { ...REPLY, body: Buffer.concat([Buffer.alloc(2 ** 20, ' '), REPLY.body]) };
      held.push(new WeakRef(body), new WeakRef(reply.body));
      engine.calls.length = 0;
      return reply;
    };
    const body = DECISION.padEnd(2 ** 19);
    const wires = await Promise.all(Array.from({ length: 5 }, () => Wire.open(t, port)));
    for (const wire of wires) {
      wire.send(`POST /v1/systemone HTTP/1.1\r\n${HOST}Content-Length: ${body.length}\r\n\r\n${body}`);
      await wire.receives(ANSWER);
    }
    const isGone = () => {
      collect();
      return held.every((each) => each.deref() === undefined);
    };
    await until(isGone);
    assert.equal(held.length, 10);
    assert.ok(wires.every(({ socket }) => !socket.destroyed));
  });
});

suite('too many requests on a connection', () => {
  const ask = (count: number) => `${POST}\r\n${DECISION}`.repeat(count);

  test('close it, and no more of them are answered than a caller may await', async (t) => {
    const { port, engine, log } = await startServer(t);
    engine.hold();
    const wire = await Wire.open(t, port);
    wire.send(ask(4 * MAX_PIPELINED));
    assert.equal(await wire.ends(), '');
    assert.ok(engine.calls.length <= MAX_PIPELINED);
    const lines = log.filter(({ msg }) => msg === 'connection closed: too many requests on it at once');
    assert.equal(lines.length, 1);
  });

  test('are more than those that a caller may await: these are all answered', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    for (let round = 1; round <= 3; round += 1) {
      wire.send(ask(MAX_PIPELINED));
      await wire.receives(ANSWER, round * MAX_PIPELINED);
    }
  });
});

/** The limits of a process that may have so many descriptors, for one and for two descriptors a connection. */
async function limitsWith(descriptors: number): Promise<{ one: number; two: number }> {
  const module = JSON.stringify(new URL('../../src/server/connections.js', import.meta.url));
  const code = `import { connectionLimit } from ${module};
console.log(JSON.stringify({ one: connectionLimit(1), two: connectionLimit(2) }));`;
  const node = [process.execPath, '--input-type=module', '--eval', code];
  const args = ['-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh', ...node];
  const { stdout, stderr } = await runCommand('sh', { args });
  return JSON.parse(stdout || assert.fail(stderr));
}

suite('too many connections', () => {
  const MAX = 10;
  const open = (t: TestContext, port: number, count: number) =>
    Promise.all(Array.from({ length: count }, () => Wire.open(t, port)));

  for (const [what, sent] of [
    ['ask nothing', ''],
    ['stop in their headers', 'GET /livez HTTP/1.1\r\nHost: loc'],
    ['were answered and stay open', `${GET}\r\n`],
    ['never end a body that nobody reads', `POST /nothing HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\n{`],
  ] as const) {
    test(`that ${what} shut out nobody: the one that has been idle for longest is closed`, async (t) => {
      const { port, get, log } = await startServer(t, { maxConnections: MAX });
      const wires: Wire[] = [];
      for (let count = 0; count < 3 * MAX; count += 1) {
        const wire = await Wire.open(t, port);
        wire.send(sent);
        if (sent.endsWith('\r\n\r\n{') || sent.endsWith('\r\n\r\n')) await wire.receives('\r\n\r\n');
        wires.push(wire);
      }
      await Promise.all(wires.slice(0, 2 * MAX).map((wire) => wire.ends()));
      assert.equal((await get('/livez')).status, 200);
      assert.ok(wires.slice(2 * MAX + 1).every(({ socket }) => !socket.destroyed));
      const lines = log.filter(({ level }) => level === 40);
      assert.deepEqual(
        lines.map(({ msg }) => msg),
        ['too many connections: those that have been idle for longest are closed'],
      );
    });
  }

  test('never cost one that is at work: a new one is closed then', async (t) => {
    const { port, engine } = await startServer(t, { maxConnections: MAX });
    const release = engine.hold();
    const wires = await open(t, port, MAX);
    for (const wire of wires) wire.send(`${POST}\r\n${DECISION}`);
    await engine.called(MAX - 1);
    const [one] = await open(t, port, 1);
    assert.equal(await one?.ends(), '');
    release();
    await Promise.all(wires.map((wire) => wire.receives(ANSWER)));
  });

  test('never cost one that has answered its first request and is at work on its second', async (t) => {
    const { port, engine } = await startServer(t, { maxConnections: MAX });
    const release = engine.hold();
    const wires = await open(t, port, MAX);
    for (const wire of wires) wire.send(`${GET}\r\n${POST}\r\n${DECISION}`);
    await Promise.all(wires.map((wire) => wire.receives('\r\n\r\n')));
    await engine.called(MAX - 1);
    const [one] = await open(t, port, 1);
    assert.equal(await one?.ends(), '');
    release();
    await Promise.all(wires.map((wire) => wire.receives(ANSWER)));
  });

  test('that take nothing of their answers shut out nobody either', async (t) => {
    const { port, engine, get, log } = await startServer(t, { maxConnections: MAX });
    engine.answer = () => ({ ...REPLY, body: Buffer.alloc(2 ** 24, 'x') });
    const wires = await open(t, port, MAX);
    for (const wire of wires) {
      wire.socket.pause();
      wire.send(`${POST}\r\n${DECISION}`);
    }
    await until(() => log.filter(({ msg }) => msg === 'request').length === MAX);
    assert.equal((await get('/livez')).status, 200);
  });

  test('never cost one that is at work because it took its last answer late', async (t) => {
    const { port, engine, log } = await startServer(t, { maxConnections: MAX });
    const body = Buffer.alloc(2 ** 24, 'x');
    engine.answer = () => ({ ...REPLY, body });
    const wires = await open(t, port, MAX);
    const [late] = wires as [Wire, ...Wire[]];
    late.socket.pause();
    late.send(`${POST}\r\n${DECISION}`);
    await until(() => log.some(({ msg }) => msg === 'request'));
    late.socket.resume();
    await until(() => late.received.length > body.length);
    const release = engine.hold();
    for (const wire of wires) wire.send(`${POST}\r\n${DECISION}`);
    await engine.called(MAX);
    const [one] = await open(t, port, 1);
    assert.equal(await one?.ends(), '');
    release();
    await Promise.all(wires.map((wire) => wire.receives(ANSWER)));
  });

  test('are as many as the descriptors allow, and 4,096 at most', async () => {
    assert.ok(connectionLimit(1) <= 4096 && connectionLimit(1) >= 1);
    assert.ok(connectionLimit(2) <= connectionLimit(1));
    assert.equal(connectionLimit(1e9), 1);
    // Other systems do not tell a process its limits.
    if (process.platform !== 'linux') return;
    const few = await limitsWith(512);
    assert.ok(few.one > 256 && few.one < 512, `${few.one} connections`);
    assert.equal(few.two, Math.floor(few.one / 2));
    assert.deepEqual(await limitsWith(50), { one: 1, two: 1 });
  });
});

test('a port that is in use refuses to start with one line that says what to do', async (t) => {
  const { port } = await startServer(t);
  await assert.rejects(startServer(t, { port }), (error) => {
    assert.ok(error instanceof Refusal);
    const why =
      'the port is in use by a server of svc, whose model is "fake"; choose another address with listen, --listen or --port';
    assert.equal(error.message, `cannot listen on 127.0.0.1:${port}: ${why}`);
    return true;
  });
});
