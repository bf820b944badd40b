import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { Wire } from '../http/server-under-test.ts';
import { until } from '../until.ts';
import { AUTHORIZATION, type GateOptions, type GateUnderTest, listen, startGate } from './gate-under-test.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const POISON = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';

interface Hostile {
  readonly gate: GateUnderTest;
  /** The open connections to the server. */
  readonly open: ReadonlySet<Socket>;
}

/** Starts a gate in front of a server that answers `/v1/well` properly and every other path with `attack`. */
async function start(t: TestContext, attack: (socket: Socket) => void, options: GateOptions = {}): Promise<Hostile> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => {});
    socket.on('data', (data) => (data.includes('/v1/well') ? socket.write(OK) : attack(socket)));
  });
  t.after(() => {
    for (const socket of open) socket.destroy();
  });
  const upstream = new URL(`http://127.0.0.1:${await listen(t, server)}`);
  return { gate: await startGate(t, { upstream, ...options }), open };
}

async function ask(t: TestContext, { port }: GateUnderTest, path: string, closes = true): Promise<Wire> {
  const wire = await Wire.open(t, port);
  const connection = closes ? 'Connection: close\r\n' : '';
  wire.send(`GET ${path} HTTP/1.1\r\nHost: gate.example\r\n${AUTHORIZATION}${connection}\r\n`);
  return wire;
}

/** Fails unless ordinary requests after the attack get their own answers. */
async function isWellAfter(t: TestContext, gate: GateUnderTest): Promise<void> {
  for (let count = 0; count < 3; count += 1) {
    assert.ok((await (await ask(t, gate, '/v1/well')).ends()).endsWith('\r\n\r\nok'));
  }
}

/** Calls `work` every `ms` until the connection is closed. */
function again(socket: Socket, ms: number, work: () => void): void {
  const timer = setInterval(() => {
    if (socket.writable) work();
  }, ms);
  socket.once('close', () => clearInterval(timer));
}

/** Writes `bytes` for as long as the other side reads them. */
function flood(socket: Socket, bytes: string): void {
  const write = () => {
    while (socket.writable && socket.write(bytes));
  };
  socket.on('drain', write);
  write();
}

suite('a server behind the gate that', { timeout: 60_000 }, () => {
  for (const [what, attack] of [
    ['adds to its headers without end', (socket: Socket) => again(socket, 10, () => socket.write('a'))],
    [
      'says now and then that it will answer',
      (socket: Socket) => again(socket, 20, () => socket.write('HTTP/1.1 102 Processing\r\n\r\n')),
    ],
    ['says nothing', () => {}],
  ] as const) {
    test(`${what} is 504 after its time`, async (t) => {
      const begin = (socket: Socket) => {
        if (what.startsWith('adds')) socket.write('HTTP/1.1 200 OK\r\nX-A: ');
        attack(socket);
      };
      const { gate, open } = await start(t, begin, { timeouts: { silenceMs: 250 } });
      const answer = await (await ask(t, gate, '/v1/x')).ends();
      assert.match(answer, /^HTTP\/1\.1 504 [\s\S]*\r\n\r\nno answer from the server within 0\.25 s$/);
      await until(() => open.size === 0);
    });
  }

  for (const [what, bytes] of [
    ['sends a header of 1 MB', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(1e6)}\r\n\r\n`],
    ['sends headers without end', `X-A: ${'a'.repeat(100)}\r\n`],
    ['says that it will answer without end', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['gives hints without end', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'],
  ] as const) {
    test(`${what} is 502 at once`, async (t) => {
      const attack = (socket: Socket) => {
        if (bytes.startsWith('X-A')) socket.write('HTTP/1.1 200 OK\r\n');
        flood(socket, bytes);
      };
      const { gate, open } = await start(t, attack, { timeouts: { silenceMs: 60_000 } });
      const answer = await (await ask(t, gate, '/v1/x')).ends();
      assert.match(answer, /^HTTP\/1\.1 502 [\s\S]*\r\n\r\nthe server cannot be reached$/);
      await until(() => open.size === 0);
      await isWellAfter(t, gate);
    });
  }

  for (const [what, bytes, cause] of [
    [
      'uses a coding that Node does not undo',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      'the server sent an answer that cannot be passed on',
    ],
    [
      'answers with a status that there is not',
      'HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n',
      'the server sent an answer that cannot be passed on',
    ],
    [
      'has two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok',
      'HPE_UNEXPECTED_CONTENT_LENGTH',
    ],
    ['breaks a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n', 'HPE_INVALID_CHUNK_SIZE'],
  ] as const) {
    test(`${what} is 502, and the log has the cause`, async (t) => {
      const { gate } = await start(t, (socket) => socket.write(bytes));
      assert.match(await (await ask(t, gate, '/v1/x')).ends(), /^HTTP\/1\.1 502 /);
      assert.equal(gate.log[0]?.cause, cause);
      await isWellAfter(t, gate);
    });
  }

  for (const [what, attack] of [
    ['answers twice at once', (socket: Socket) => socket.write(OK + POISON)],
    [
      'answers once more while nobody asks',
      (socket: Socket) => socket.write(OK, () => setTimeout(() => socket.write(POISON), 20)),
    ],
    [
      'has a body in its 204',
      (socket: Socket) => socket.write(`HTTP/1.1 204 No\r\nContent-Length: 93\r\n\r\n${POISON}`),
    ],
  ] as const) {
    test(`${what} answers nobody else with it`, async (t) => {
      const { gate, open } = await start(t, attack);
      const answer = await (await ask(t, gate, '/v1/x')).ends();
      assert.match(answer, /^HTTP\/1\.1 (200|204|502) /);
      assert.doesNotMatch(answer, /poison/);
      // The gate gives up the connection that holds the second answer before it is used again.
      await until(() => open.size === 0);
      await isWellAfter(t, gate);
    });
  }

  test('sends a 204 with a length is passed on without it', async (t) => {
    const { gate } = await start(t, (socket) => socket.write('HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n'));
    const answer = await (await ask(t, gate, '/v1/x')).ends();
    assert.match(answer, /^HTTP\/1\.1 204 /);
    assert.doesNotMatch(answer, /content-length/i);
  });

  test('closes in the body closes for the caller, too, who can see that it is not whole', async (t) => {
    const { gate } = await start(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n', () =>
        setTimeout(() => socket.destroy(), 20),
      );
    });
    const answer = await (await ask(t, gate, '/v1/x', false)).ends();
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*hello/);
    assert.doesNotMatch(answer, /\r\n0\r\n\r\n$/);
  });

  test('stops in the body is given up after its time', async (t) => {
    const { gate, open } = await start(t, (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'), {
      timeouts: { silenceMs: 100 },
    });
    assert.ok((await (await ask(t, gate, '/v1/x', false)).ends()).endsWith('\r\n\r\nabc'));
    await until(() => open.size === 0);
  });

  for (const [path, timeouts] of [
    ['/v1/x', { silenceMs: 300, batchMs: 60_000 }],
    ['/v1/systemone/batch?x', { silenceMs: 60_000, batchMs: 300 }],
  ] as const) {
    test(`sends its body byte by byte without end is given up after the time of ${path}`, async (t) => {
      const begin = (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
        again(socket, 10, () => socket.write('a'));
      };
      const { gate, open } = await start(t, begin, { timeouts });
      const answer = await (await ask(t, gate, path, false)).ends();
      assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\na+$/);
      await until(() => open.size === 0 && gate.log.length > 1);
      assert.equal(gate.log[0]?.msg, 'connection closed: the answer of the server was not whole within 0.3 s');
    });
  }

  test('sends a body for longer than it may be silent is passed on to the end where that is a batch', async (t) => {
    const begin = (socket: Socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n');
      again(socket, 300, () => socket.write('a'));
    };
    const { gate } = await start(t, begin, { timeouts: { silenceMs: 2000, batchMs: 60_000 } });
    assert.match(await (await ask(t, gate, '/v1/systemone/batch')).ends(), /\r\n\r\na{10}$/);
  });

  test('sends a body without end is read as fast as the caller reads, and not after the caller has gone', async (t) => {
    const { gate, open } = await start(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      flood(socket, `10000\r\n${'x'.repeat(0x10000)}\r\n`);
    });
    const wire = await ask(t, gate, '/v1/x');
    await wire.receives('xxxx');
    wire.socket.pause();
    const [server = assert.fail()] = open;
    let before = -1;
    while (before !== server.bytesWritten) {
      before = server.bytesWritten;
      await new Promise((done) => setTimeout(done, 300));
    }
    assert.ok(before < 64 * 2 ** 20, `${before} bytes`);
    wire.socket.destroy();
    await until(() => open.size === 0);
    await isWellAfter(t, gate);
  });
});
