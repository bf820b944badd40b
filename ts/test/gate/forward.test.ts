import assert from 'node:assert/strict';
import dns from 'node:dns';
import { EventEmitter, once } from 'node:events';
import { Agent, type AgentOptions, type IncomingMessage, type RequestListener, request } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createAgent } from '../../src/gate/agent.ts';
import { DEFAULT_TIMEOUTS } from '../../src/server/http-server.ts';
import { freePort } from '../free-port.ts';
import { rawHeader, Wire } from '../http/server-under-test.ts';
import { until } from '../until.ts';
import { type GateUnderTest, KEY, listen, startGate } from './gate-under-test.ts';

const HOST = 'Host: gate.example\r\n';
const KEYED = `${HOST}Authorization: Bearer ${KEY}\r\n`;
const MIB = 2 ** 20;

/** Sends one request with the key. */
async function send(
  gate: GateUnderTest,
  sent: { method?: string; path?: string; headers?: object; body?: string | Buffer } = {},
) {
  const { method = 'POST', path = '/v1/x', headers = {}, body } = sent;
  const options = { host: '127.0.0.1', port: gate.port, path, agent: false as const, method };
  const all = { authorization: `Bearer ${KEY}`, ...headers };
  const [res] = (await once(request({ ...options, headers: all }).end(body), 'response')) as [IncomingMessage];
  return { status: res.statusCode, headers: res.headers, body: await buffer(res) };
}

/** Returns a promise, and the function that fulfils it. */
function latch(): [opened: Promise<unknown>, open: () => void] {
  const events = new EventEmitter();
  return [once(events, 'open'), () => void events.emit('open')];
}

suite('headers to the server', () => {
  test('are those of the caller without the key, those of the connection and those that it names', async (t) => {
    const gate = await startGate(t);
    const wire = await Wire.open(t, gate.port);
    const dropped = 'Keep-Alive: 1\r\nTE: trailers\r\nProxy-Authorization: x\r\nProxy-Connection: x\r\nX-Named: x\r\n';
    const kept = 'Accept: application/json\r\nOrigin: http://a.example\r\nX-Other: 1\r\nX-Other: 2\r\n';
    wire.send(
      `GET /v1/x HTTP/1.1\r\n${KEYED}Connection: close, x-NAMED\r\n${dropped}${kept}x-request-id: mine\r\n\r\n`,
    );
    await wire.ends();
    const [{ headers, rawHeaders } = assert.fail()] = gate.requests;
    assert.deepEqual(headers, {
      accept: 'application/json',
      origin: 'http://a.example',
      'x-other': '1, 2',
      'x-request-id': 'mine',
      host: headers.host,
      via: headers.via,
      connection: 'keep-alive',
    });
    assert.match(headers.via ?? '', /^1\.1 svc-gate-[\da-f]{16}$/);
    assert.match(headers.host ?? '', /^127\.0\.0\.1:\d+$/);
    assert.doesNotMatch(rawHeaders.join(), new RegExp(KEY));
  });

  test('have the digest of the state, that of the caller or else its own', async (t) => {
    const gate = await startGate(t, { answer: async (req, res) => res.end(await buffer(req)) });
    const A = 'ca978112ca1bbdca';
    const given = (value: string) => ({ 'x-svc-state': value });
    const cases: [string, string | Buffer, object, string | undefined][] = [
      ['/v1/systemone', '{"state":"a"}', {}, A],
      ['/v1/systemone?x=1', '{"questions": {"state": 1}, "state": "\\u0061" }', {}, A],
      ['/v1/systemone', '{"state":{"id": 7}}', {}, 'ad559f4e2220ee73'],
      ['/v1/systemone', '{"state":"a"}', { 'transfer-encoding': 'chunked' }, A],
      ['/v1/systemone', '{"state":"a"}', given('0123456789abcdef'), '0123456789abcdef'],
      ['/v1/systemone', '{"state":"a"}', given('mine'), A],
      ['/v1/decisions', '{"input":"a"}', {}, A],
      ['/v1/systemone/batch', '{"state":"a"}', {}, undefined],
      ['/v1/systemone', '{"state":"\n"', given('mine'), undefined],
      ['/v1/systemone', 'state', {}, undefined],
      ['/v1/systemone', '', {}, undefined],
      ['/v1/systemone', gzipSync('{"state":"a"}'), { 'content-encoding': 'gzip' }, undefined],
    ];
    for (const [path, body, headers, digest] of cases) {
      const answer = await send(gate, { path, body, headers });
      assert.deepEqual([gate.requests.at(-1)?.headers['x-svc-state'], answer.body], [digest, Buffer.from(body)], path);
    }
  });

  test('have no digest of a long body, which goes on as it comes', async (t) => {
    const gate = await startGate(t, { answer: async (req, res) => res.end(String((await buffer(req)).length)) });
    const body = JSON.stringify({ state: 'x'.repeat(3 * MIB) });
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
      const answer = await send(gate, { path: '/v1/systemone', body, headers });
      assert.equal(answer.body.toString(), String(body.length));
      assert.equal(gate.requests.at(-1)?.headers['x-svc-state'], undefined);
    }
  });

  test('have the digest of a body of 1 MiB, and none of one that is a byte longer', async (t) => {
    const gate = await startGate(t, { answer: async (req, res) => res.end(String((await buffer(req)).length)) });
    for (const [bytes, hasDigest] of [
      [MIB, true],
      [MIB + 1, false],
    ] as const) {
      const body = '{"state":"a"}'.padEnd(bytes);
      for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
        const answer = await send(gate, { path: '/v1/systemone', body, headers });
        assert.equal(answer.body.toString(), String(bytes));
        assert.equal(gate.requests.at(-1)?.headers['x-svc-state'], hasDigest ? 'ca978112ca1bbdca' : undefined);
      }
    }
  });

  test('are not sent to the server when the caller goes, or takes too long, before the body is there', async (t) => {
    const gate = await startGate(t, { bodyMs: 400 });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/systemone HTTP/1.1\r\n${KEYED}Content-Length: 9\r\n\r\n{`);
    assert.match(await wire.ends(), /^HTTP\/1\.1 408 [\s\S]+body did not arrive within 0\.4 s$/);
    await until(() => gate.log.length === 1);
    assert.deepEqual([gate.log[0]?.code, gate.requests.length], ['body_timeout', 0]);

    const patient = await startGate(t, { bodyMs: 60_000 });
    const gone = await Wire.open(t, patient.port);
    gone.send(`POST /v1/systemone HTTP/1.1\r\n${KEYED}Content-Length: 9\r\nExpect: 100-continue\r\n\r\n`);
    await gone.receives('100 Continue\r\n\r\n');
    gone.send('{');
    gone.socket.destroy();
    await until(() => patient.log.length === 1);
    assert.deepEqual([patient.log[0]?.code, patient.requests.length], ['cancelled', 0]);
  });

  test('never have the key, on the open path neither', async (t) => {
    const gate = await startGate(t);
    const wire = await Wire.open(t, gate.port);
    wire.send(`GET /health HTTP/1.1\r\n${KEYED}Connection: close\r\n\r\n`);
    await wire.ends();
    assert.equal(gate.requests[0]?.headers.authorization, undefined);
  });

  test('have a new request id when the caller sends none or a wrong one, which the answer has twice', async (t) => {
    const gate = await startGate(t);
    for (const callers of [{}, { 'x-request-id': 'a b' }, { 'x-request-id': 'x'.repeat(129) }]) {
      const { headers } = await send(gate, { headers: callers });
      assert.match(String(headers['x-request-id']), /^[\da-f-]{36}$/);
      assert.equal(headers['x-typesafe-request-id'], headers['x-request-id']);
      assert.equal(gate.requests.at(-1)?.headers['x-request-id'], headers['x-request-id']);
    }
    const { headers } = await send(gate, { headers: { 'x-request-id': 'mine' } });
    assert.equal(headers['x-request-id'], 'mine');
    assert.equal(headers['x-typesafe-request-id'], 'mine');
  });
});

suite('the answer', () => {
  test('has the status, the headers and the body of the server, without those of its connection', async (t) => {
    const gate = await startGate(t, {
      answer: (_, res) => {
        const own = {
          'Retry-After': '7',
          'Server-Timing': 'total;dur=1',
          'Set-Cookie': ['a', 'b'],
          Connection: 'x-named',
        };
        res.writeHead(503, {
          ...own,
          'X-Named': 'x',
          'Proxy-Authenticate': 'x',
          'x-request-id': 'other',
          Trailer: 'x',
        });
        res.end('busy');
      },
    });
    const { status, headers, body } = await send(gate, { headers: { 'x-request-id': 'mine' } });
    assert.equal(status, 503);
    assert.equal(body.toString(), 'busy');
    assert.deepEqual(
      gate.log.map(({ level, status, code, path }) => ({ level, status, code, path })),
      [{ level: 30, status: 503, code: undefined, path: '/v1/x' }],
    );
    assert.equal(headers['retry-after'], '7');
    assert.equal(headers['server-timing'], 'total;dur=1');
    assert.deepEqual(headers['set-cookie'], ['a', 'b']);
    assert.equal(headers['x-request-id'], 'mine');
    for (const name of ['x-named', 'proxy-authenticate', 'trailer']) assert.equal(headers[name], undefined);
  });

  test('is passed on compressed as it is, and so is the request', async (t) => {
    const zipped = gzipSync('{"a":1}');
    const gate = await startGate(t, {
      answer: async (req, res) => {
        const body = await buffer(req);
        res.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': body.length }).end(body);
      },
    });
    const { headers, body } = await send(gate, { headers: { 'content-encoding': 'gzip' }, body: zipped });
    assert.equal(gate.requests[0]?.headers['content-encoding'], 'gzip');
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(headers['content-length'], String(zipped.length));
    assert.equal(gunzipSync(body).toString(), '{"a":1}');
  });

  test('to HEAD has the length and no body, and the connection stays open', async (t) => {
    const gate = await startGate(t, {
      answer: (req, res) => {
        res.setHeader('Content-Length', 5);
        res.end(req.method === 'HEAD' ? undefined : 'hello');
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`HEAD /v1/x HTTP/1.1\r\n${KEYED}\r\n`);
    const head = await wire.receives('\r\n\r\n');
    assert.equal(rawHeader(head, 'content-length'), '5');
    wire.send(`GET /v1/x HTTP/1.1\r\n${KEYED}\r\n`);
    assert.match((await wire.receives('hello')).slice(head.length), /^HTTP\/1\.1 200 OK\r\n/);
  });

  for (const status of [204, 304]) {
    test(`of ${status} has no body, and the connection stays open`, async (t) => {
      const gate = await startGate(t, { answer: (_, res) => res.writeHead(status).end() });
      const wire = await Wire.open(t, gate.port);
      for (const count of [1, 2]) {
        wire.send(`GET /v1/x HTTP/1.1\r\n${KEYED}\r\n`);
        await wire.receives('\r\n\r\n', count);
      }
      assert.equal(wire.received.split(`HTTP/1.1 ${status} `).length, 3);
    });
  }

  test('to HTTP/1.0 has no chunks and ends the connection', async (t) => {
    const gate = await startGate(t, {
      answer: (_, res) => {
        res.write('a');
        res.end('b');
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`GET /v1/x HTTP/1.0\r\n${KEYED}\r\n`);
    const answer = await wire.ends();
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.ok(answer.endsWith('\r\n\r\nab'));
    assert.equal(rawHeader(answer, 'transfer-encoding'), undefined);
  });

  test('begins before the server has ended it: headers alone, then each part', async (t) => {
    const [wanted, want] = latch();
    const gate = await startGate(t, {
      answer: async (_, res) => {
        res.flushHeaders();
        await wanted;
        res.end('late');
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`GET /v1/x HTTP/1.1\r\n${KEYED}\r\n`);
    await wire.receives('\r\n\r\n');
    want();
    await wire.receives('late');
  });

  test('to Expect: 100-continue comes after the body was asked for', async (t) => {
    const gate = await startGate(t, { answer: async (req, res) => res.end(await buffer(req)) });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n`);
    await wire.receives('HTTP/1.1 100 Continue\r\n\r\n');
    wire.send('body');
    assert.match(await wire.receives('\r\n\r\nbody'), /HTTP\/1\.1 200 OK/);
    assert.equal(gate.requests[0]?.headers.expect, undefined);
  });

  test('to requests that follow on one connection comes in their order', async (t) => {
    const gate = await startGate(t, {
      answer: (req, res) => setTimeout(() => res.end(req.url), req.url === '/v1/1' ? 30 : 0),
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(['/v1/1', '/v1/2', '/v1/3'].map((path) => `GET ${path} HTTP/1.1\r\n${KEYED}\r\n`).join(''));
    const answer = await wire.receives('/v1/3');
    assert.deepEqual(answer.match(/\/v1\/\d/g), ['/v1/1', '/v1/2', '/v1/3']);
  });
});

const SIZE = 96 * MIB;

suite('streams', () => {
  test('a body stops at the caller while the server does not read', async (t) => {
    const [wanted, want] = latch();
    let received = 0;
    const gate = await startGate(t, {
      bodyMs: 60_000,
      answer: async (req, res) => {
        await wanted;
        for await (const chunk of req) received += chunk.length;
        res.end('read');
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}Content-Length: ${SIZE}\r\n\r\n`);
    let sent = 0;
    const write = async () => {
      for (; sent < SIZE; sent += MIB) if (!wire.socket.write(Buffer.alloc(MIB))) await once(wire.socket, 'drain');
    };
    const written = write();
    await isStuck(() => sent);
    assert.ok(sent < SIZE / 2, `${sent} bytes went out`);
    want();
    await written;
    await wire.receives('read');
    assert.equal(received, SIZE);
  });

  test('an answer stops at the server while the caller does not read', async (t) => {
    let sent = 0;
    const gate = await startGate(t, {
      answer: async (_, res) => {
        res.setHeader('Content-Length', SIZE);
        for (; sent < SIZE; sent += MIB) if (!res.write(Buffer.alloc(MIB))) await once(res, 'drain');
        res.end();
      },
    });
    const options = { host: '127.0.0.1', port: gate.port, path: '/v1/x', agent: false as const };
    const req = request({ ...options, headers: { authorization: `Bearer ${KEY}` } }).end();
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    await isStuck(() => sent);
    assert.ok(sent < SIZE / 2, `${sent} bytes went out`);
    let received = 0;
    for await (const chunk of res) received += chunk.length;
    assert.equal(received, SIZE);
  });
});

/** Waits until `count` no longer grows. */
async function isStuck(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); ) {
    before = count();
    await new Promise((done) => setTimeout(done, 300));
  }
}

/** Sends a request on a connection of its own, which closes after the answer, and returns all received bytes. */
async function answerTo(t: TestContext, gate: GateUnderTest, accept = ''): Promise<string> {
  const wire = await Wire.open(t, gate.port);
  wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}${accept}Connection: close\r\nContent-Length: 2\r\n\r\n{}`);
  return wire.ends();
}

suite('the request to the server', () => {
  for (const method of ['POST', 'PUT', 'PATCH']) {
    test(`has the length of the body of a ${method}`, async (t) => {
      const gate = await startGate(t);
      assert.equal((await send(gate, { method, body: 'four' })).status, 200);
      const [{ headers } = assert.fail()] = gate.requests;
      assert.deepEqual([headers['content-length'], headers['transfer-encoding']], ['4', undefined]);
    });
  }

  test('begins with a TLS handshake where the address of the server says https', async (t) => {
    const bytes: Buffer[] = [];
    const upstream = createSocketServer((socket) =>
      socket
        .on('error', () => {})
        .once('data', (first) => {
          bytes.push(first);
          socket.destroy();
        }),
    );
    const gate = await startGate(t, { upstream: new URL(`https://127.0.0.1:${await listen(t, upstream)}`) });
    assert.equal((await send(gate)).status, 502);
    // The first byte is the type of a TLS record: a handshake.
    assert.equal(bytes[0]?.[0], 22);
  });
});

suite('when the server fails', () => {
  const MESSAGE = 'the server cannot be reached';

  test('a server that is not there is 502 in one line, and the log has the cause', async (t) => {
    const gate = await startGate(t, { upstream: new URL(`http://127.0.0.1:${await freePort()}`) });
    const answer = await answerTo(t, gate);
    assert.match(answer, /^HTTP\/1\.1 502 Bad Gateway\r\n/);
    assert.ok(answer.endsWith(`\r\n\r\n${MESSAGE}`));
    const id = rawHeader(answer, 'x-request-id');
    assert.deepEqual(
      gate.log.map(({ level, msg, id, cause, status, code }) => ({ level, msg, id, cause, status, code })),
      [
        { level: 40, msg: 'the server failed', id, cause: 'ECONNREFUSED', status: undefined, code: undefined },
        { level: 30, msg: 'request', id, cause: undefined, status: 502, code: 'upstream_failed' },
      ],
    );
  });

  test('a caller who accepts JSON alone gets the error as JSON', async (t) => {
    const gate = await startGate(t, { upstream: new URL(`http://127.0.0.1:${await freePort()}`) });
    const answer = await answerTo(t, gate, 'Accept: application/json\r\n');
    const detail = `"detail":{"error_type":"upstream_failed","message":"${MESSAGE}"}`;
    assert.ok(answer.endsWith(`\r\n\r\n{"error":{"code":502,"message":"${MESSAGE}"},${detail}}`));
  });

  for (const [what, bytes] of [
    ['says nothing and closes', ''],
    ['does not speak HTTP', 'hello\r\n\r\n'],
    ['speaks two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
    ['changes the protocol without a word of it', 'HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n'],
    ['answers with a status that there is not', 'HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n'],
    ['breaks off in its headers', 'HTTP/1.1 200 OK\r\nConte'],
  ] as const) {
    test(`a server that ${what} is 502`, async (t) => {
      const upstream = createSocketServer((socket) =>
        socket.on('error', () => {}).once('data', () => socket.end(bytes)),
      );
      const gate = await startGate(t, { upstream: new URL(`http://127.0.0.1:${await listen(t, upstream)}`) });
      const answer = await answerTo(t, gate);
      assert.match(answer, /^HTTP\/1\.1 502 Bad Gateway\r\n/);
      assert.ok(answer.endsWith(`\r\n\r\n${MESSAGE}`));
    });
  }

  test('an answer that breaks off breaks off for the caller as well', async (t) => {
    const upstream = createSocketServer((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')),
    );
    const gate = await startGate(t, { upstream: new URL(`http://127.0.0.1:${await listen(t, upstream)}`) });
    const answer = await answerTo(t, gate);
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.ok(answer.endsWith('\r\n\r\nhalf'));
    assert.equal(gate.log.at(-1)?.code, 'upstream_failed');
  });

  test('a server that is silent is 504 in one line', async (t) => {
    const gate = await startGate(t, { answer: () => {}, timeouts: { silenceMs: 60 } });
    const answer = await answerTo(t, gate);
    assert.match(answer, /^HTTP\/1\.1 504 Gateway Timeout\r\n/);
    assert.ok(answer.endsWith('\r\n\r\nno answer from the server within 0.06 s'));
    assert.equal(gate.log.length, 1);
    assert.equal(gate.log[0]?.code, 'upstream_timeout');
  });

  test('a server that takes no connection is 504 after the time to connect, not before and not later', async (t) => {
    const gate = await startGate(t, { upstream: new URL('http://server.example'), timeouts: { connectMs: 60 } });
    const [looked, look] = latch();
    t.mock.method(dns, 'lookup', look);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const answer = answerTo(t, gate);
    await looked;
    await new Promise(setImmediate);
    t.mock.timers.tick(59);
    assert.equal((await send(gate, { method: 'GET', path: '/livez' })).status, 404);
    assert.deepEqual(
      gate.log.map(({ path }) => path),
      ['/livez'],
    );
    t.mock.timers.tick(1);
    assert.match(await answer, /^HTTP\/1\.1 504 [\s\S]+no answer from the server within 0\.06 s$/);
  });

  for (const protocol of ['http:', 'https:']) {
    test(`an idle connection over ${protocol} is given up before the server closes it`, () => {
      const { timeout } = (createAgent(protocol) as Agent & { readonly options: AgentOptions }).options;
      assert.ok(timeout && timeout < DEFAULT_TIMEOUTS.keepAliveMs, `${timeout}`);
    });
  }

  test('a server that answers before it has read the body gets through', async (t) => {
    const gate = await startGate(t, {
      answer: (_, res) => res.writeHead(413, { Connection: 'close' }).end('too large'),
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}Content-Length: ${8 * MIB}\r\n\r\n`);
    await wire.receives('too large');
    wire.socket.write(Buffer.alloc(8 * MIB));
    wire.send(`GET /health HTTP/1.1\r\n${HOST}\r\n`);
    await wire.receives('too large', 2);
  });

  test('a connection to the server is used again, and a new one is made when it was closed', async (t) => {
    const gate = await startGate(t, { answer: (req, res) => res.end(String(req.socket.remotePort)) });
    const ports = [];
    for (let count = 0; count < 3; count += 1) {
      ports.push((await send(gate)).body.toString());
      await new Promise((done) => setTimeout(done, 5));
    }
    assert.equal(new Set(ports).size, 1);
    gate.upstreamServer.closeAllConnections();
    await new Promise((done) => setTimeout(done, 20));
    assert.notEqual((await send(gate)).body.toString(), ports[0]);
  });
});

/** A time-out so long that the server can only hear of the end from the gate, and not from the time-out. */
suite('a body that drips', { timeout: 60_000 }, () => {
  for (const path of ['/v1/systemone', '/v1/systemone/batch', '/v1/x']) {
    for (const [framing, first, drop] of [
      ['Content-Length: 1000000', '', 'x'],
      ['Transfer-Encoding: chunked', '', '1\r\nx\r\n'],
      ['Transfer-Encoding: chunked', '1;', 'x'],
    ] as const) {
      test(`(${framing}, ${first || 'x'}) to ${path} ends with its time, for the server as well`, async (t) => {
        const open = new Set<IncomingMessage>();
        const gate = await startGate(t, {
          bodyMs: 400,
          answer: (req) => {
            open.add(req);
            req.on('error', () => open.delete(req)).resume();
          },
        });
        const wire = await Wire.open(t, gate.port);
        wire.send(`POST ${path} HTTP/1.1\r\n${KEYED}${framing}\r\n\r\n${first}`);
        // A drop that meets a closed connection would reset it, and the answer would be lost.
        const timer = setInterval(() => wire.socket.writable && wire.send(drop), 120);
        t.after(() => clearInterval(timer));
        assert.match(await wire.ends(), /^HTTP\/1\.1 408 [\s\S]*body did not arrive within 0\.4 s/);
        await until(() => open.size === 0);
      });
    }
  }
});

suite('when the caller goes', { timeout: 60_000 }, () => {
  test('while the server works, the server hears of it', async (t) => {
    let isOver = false;
    const gate = await startGate(t, {
      answer: (_, res) => {
        res.once('close', () => {
          isOver = true;
        });
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}Content-Length: 2\r\n\r\n{}`);
    await until(() => gate.requests.length === 1);
    wire.socket.destroy();
    await until(() => isOver && gate.log.length > 0);
    assert.deepEqual(
      gate.log.map(({ level, status, code }) => ({ level, status, code })),
      [{ level: 30, status: 499, code: 'cancelled' }],
    );
  });

  test('in the middle of the body, the server hears of it', async (t) => {
    let isOver = false;
    const gate = await startGate(t, {
      answer: (req) => {
        req.on('error', () => {
          isOver = true;
        });
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}Content-Length: 10\r\n\r\nhalf`);
    await until(() => gate.requests.length === 1);
    wire.socket.destroy();
    await until(() => isOver && gate.log.length > 0);
    assert.equal(gate.log[0]?.code, 'cancelled');
  });

  test('in the middle of the answer, the server hears of it', async (t) => {
    let isOver = false;
    const gate = await startGate(t, {
      answer: (_, res) => {
        res.write('half');
        res.once('close', () => {
          isOver = true;
        });
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`GET /v1/x HTTP/1.1\r\n${KEYED}\r\n`);
    await wire.receives('half');
    wire.socket.destroy();
    await until(() => isOver && gate.log.length > 0);
    assert.deepEqual(
      gate.log.map(({ level, code }) => ({ level, code })),
      [{ level: 30, code: 'cancelled' }],
    );
  });

  test('a body that does not come in time is 408', async (t) => {
    const gate = await startGate(t, { answer: () => {}, bodyMs: 400 });
    const wire = await Wire.open(t, gate.port);
    wire.send(`POST /v1/x HTTP/1.1\r\n${KEYED}Content-Length: 10\r\n\r\nhalf`);
    const answer = await wire.ends();
    assert.match(answer, /^HTTP\/1\.1 408 /);
    assert.ok(answer.endsWith('body did not arrive within 0.4 s'));
  });
});

suite('the end', () => {
  test('a new request on an open connection is turned away, with or without the key', async (t) => {
    for (const head of [KEYED, HOST]) {
      const gate = await startGate(t);
      const wire = await Wire.open(t, gate.port);
      wire.send(`GET /health HTTP/1.1\r\n${HOST}\r\n`);
      await wire.receives('\r\n\r\n');
      gate.lifecycle.advance('draining');
      wire.send(`GET /v1/x HTTP/1.1\r\n${head}\r\n`);
      const answer = await wire.ends();
      assert.match(answer, /HTTP\/1\.1 503 Service Unavailable\r\n/);
      assert.ok(answer.endsWith('\r\n\r\nthe server is shutting down'));
      assert.equal(gate.requests.length, 1);
    }
  });

  test('open answers finish, and connections end with them', async (t) => {
    const [wanted, want] = latch();
    const gate = await startGate(t, {
      answer: async (_, res) => {
        await wanted;
        res.end('done');
      },
    });
    const wire = await Wire.open(t, gate.port);
    wire.send(`GET /v1/x HTTP/1.1\r\n${KEYED}\r\n`);
    await until(() => gate.requests.length === 1);
    const drained = gate.http.drain();
    await until(() => gate.lifecycle.phase === 'draining');
    want();
    const answer = await wire.ends();
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.equal(rawHeader(answer, 'connection'), 'close');
    await drained;
    await assert.rejects(send(gate), { code: 'ECONNREFUSED' });
  });

  test('many callers at once all get their own answer', async (t) => {
    // No time-out may end a request here, however long it takes.
    const timeouts = { connectMs: 60_000, silenceMs: 60_000 };
    const answer: RequestListener = async (req, res) => res.end(await buffer(req));
    const gate = await startGate(t, { answer, timeouts, bodyMs: 60_000 });
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    t.after(() => agent.destroy());
    const ask = async (text: string) => {
      const options = { host: '127.0.0.1', port: gate.port, path: '/v1/x', method: 'POST', agent };
      const req = request({ ...options, headers: { authorization: `Bearer ${KEY}` } }).end(text);
      const [res] = (await once(req, 'response')) as [IncomingMessage];
      return (await buffer(res)).toString();
    };
    const texts = Array.from({ length: 500 }, (_, index) => `${index}`.repeat(20));
    assert.deepEqual(await Promise.all(texts.map(ask)), texts);
  });
});
