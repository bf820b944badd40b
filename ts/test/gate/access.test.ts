import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { targetAccess } from '../../src/gate/target.ts';
import { rawHeader, Wire } from '../http/server-under-test.ts';
import { AUTHORIZATION, type GateUnderTest, KEY, startGate } from './gate-under-test.ts';

const HOST = 'Host: gate.example\r\n';
/** The headers of a request after which the connection ends. */
const LAST = `${HOST}Connection: close\r\n`;

/** Sends bytes as they are, and returns all bytes that come back until the gate closes the connection. */
async function raw(t: TestContext, { port }: GateUnderTest, bytes: string): Promise<string> {
  const wire = await Wire.open(t, port);
  wire.send(bytes);
  return wire.ends();
}

const status = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

const body = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4);

suite('the key of the gate', () => {
  for (const [what, header] of [
    ['no key', ''],
    ['a wrong key', 'Authorization: Bearer another-key-of-16\r\n'],
    ['a part of the key', `Authorization: Bearer ${KEY.slice(0, -1)}\r\n`],
    ['more than the key', `Authorization: Bearer ${KEY}x\r\n`],
    ['the key in Basic auth', `Authorization: Basic ${Buffer.from(`x:${KEY}`).toString('base64')}\r\n`],
    ['an empty key', 'Authorization: Bearer \r\n'],
  ] as const) {
    test(`${what} gets the 401 of the server on every path under /v1/, and nothing is passed on`, async (t) => {
      const gate = await startGate(t);
      for (const path of ['/v1/systemone', '/v1/models', '/v1/', '/v1/nothing?password=x']) {
        const answer = await raw(t, gate, `POST ${path} HTTP/1.1\r\n${LAST}${header}Content-Length: 0\r\n\r\n`);
        assert.equal(status(answer), 401);
        assert.equal(body(answer), '{"error":"missing or wrong API key"}');
        assert.equal(rawHeader(answer, 'www-authenticate'), 'Bearer');
        assert.equal(rawHeader(answer, 'content-type'), 'application/json; charset=utf-8');
        assert.match(rawHeader(answer, 'x-request-id') ?? '', /^[\w-]{36}$/);
      }
      assert.equal(gate.requests.length, 0);
    });
  }

  test('opens every path under /v1/', async (t) => {
    const gate = await startGate(t);
    for (const path of ['/v1/systemone', '/v1/models', '/v1/', '/v1/a/b-c_d.e~f/', '/v1/x?a=/../b//c\\%2e&d']) {
      assert.equal(status(await raw(t, gate, `GET ${path} HTTP/1.1\r\n${LAST}${AUTHORIZATION}\r\n`)), 200);
      assert.equal(gate.requests.at(-1)?.url, path);
    }
  });

  test('is not needed for /health', async (t) => {
    const gate = await startGate(t);
    for (const path of ['/health', '/health?x=1']) {
      assert.equal(status(await raw(t, gate, `GET ${path} HTTP/1.1\r\n${LAST}\r\n`)), 200);
      assert.equal(gate.requests.at(-1)?.url, path);
    }
  });

  test('is not needed anywhere when it is off', async (t) => {
    const gate = await startGate(t, { hasKey: false });
    assert.equal(status(await raw(t, gate, `GET /v1/models HTTP/1.1\r\n${LAST}\r\n`)), 200);
    assert.equal(status(await raw(t, gate, `GET /stats HTTP/1.1\r\n${LAST}\r\n`)), 404);
  });
});

/** The paths that must never reach the server, with or without the key. */
const REFUSED = [
  ['the pages of the operator', ['/', '/stats', '/metrics', '/recipes', '/playground', '/reload', '/docs', '/livez']],
  ['no path of the gate', ['/v1', '/v2/x', '/V1/systemone', '/HEALTH', '/healthz', '/health/', '/xv1/systemone', '*']],
  [
    'dot segments',
    [
      '/v1/../stats',
      '/v1/./x',
      '/v1/..',
      '/v1/.',
      '/v1/x/..',
      '/health/../stats',
      '/v1/../../stats',
      '/v1/..?x',
      '/./v1/x',
    ],
  ],
  [
    'encoded dots and slashes',
    ['/v1/%2e%2e/stats', '/v1/%2E%2E/stats', '/v1/.%2e/stats', '/v1/..%2fstats', '/v1%2fsystemone', '/%761/systemone'],
  ],
  ['encodings of encodings', ['/v1/%252e%252e/stats', '/v1/%c0%ae%c0%ae/stats', '/v1/%u002e/x', '/v1/%', '/v1/a%20b']],
  ['doubled slashes', ['//v1/systemone', '/v1//systemone', '/v1/systemone//', '//stats', '//stats/v1/', '/health//']],
  [
    'backslashes',
    ['/v1\\systemone', '/v1/\\..\\stats', '\\v1\\systemone', '/v1/x\\..\\..\\stats', '/v1/%5c..%5cstats'],
  ],
  [
    'whole URLs and other hosts',
    [
      'http://gate.example/v1/x',
      'http://gate.example/stats',
      '//gate.example/v1/x',
      'gate.example:80/v1/x',
      'file:///v1/x',
      'http://[/v1/x',
      'http://a:b:c/v1/x',
    ],
  ],
  ['fragments', ['/v1/x#y', '/health#/../stats', '/v1/x?y#z', '#/v1/x']],
  ['parameters of segments', ['/v1/..;/stats', '/v1;x/y', '/v1/x;y']],
  ['signs that are not ASCII', ['/v1/\xe4', '/v1/x?\xe4', '/v1/\xef\xbc\x8e\xef\xbc\x8e/stats']],
] as const;

suite('the path that is checked', () => {
  for (const [what, targets] of REFUSED) {
    test(`never has ${what}`, async (t) => {
      const gate = await startGate(t);
      for (const target of targets) {
        assert.equal(targetAccess(target), undefined, target);
        const answer = await raw(t, gate, `GET ${target} HTTP/1.1\r\n${LAST}${AUTHORIZATION}\r\n`);
        // Node itself refuses some of them.
        assert.ok([400, 404].includes(status(answer)), `${target}: ${answer}`);
        assert.match(body(answer), /^(not found|malformed HTTP request)$/);
      }
      assert.equal(gate.requests.length, 0);
    });
  }

  for (const [what, target] of [
    ['NUL', '/v1/x\0y'],
    ['a tab', '/v1/x\ty'],
    ['a line feed', '/v1/x\ny'],
    ['a space', '/v1/x y'],
    ['a bare carriage return', '/v1/x\ry'],
  ] as const) {
    test(`never has ${what}`, async (t) => {
      const gate = await startGate(t);
      assert.equal(targetAccess(target), undefined);
      const answer = await raw(t, gate, `GET ${target} HTTP/1.1\r\n${LAST}${AUTHORIZATION}\r\n`);
      assert.equal(status(answer), 400);
      assert.equal(gate.requests.length, 0);
    });
  }

  test('is not found without the key as well', async (t) => {
    const gate = await startGate(t);
    const answer = await raw(t, gate, `GET /v1/../stats HTTP/1.1\r\n${LAST}\r\n`);
    assert.equal(status(answer), 404);
    assert.equal(body(answer), 'not found');
  });

  test('decides alone, whatever other headers say of the path', async (t) => {
    const gate = await startGate(t);
    const other = 'X-Original-URL: /v1/x\r\nX-Rewrite-URL: /v1/x\r\nX-Forwarded-Prefix: /v1\r\n';
    assert.equal(status(await raw(t, gate, `GET /stats HTTP/1.1\r\n${LAST}${AUTHORIZATION}${other}\r\n`)), 404);
    assert.equal(gate.requests.length, 0);
  });
});

suite('what is no plain request', () => {
  test('a CONNECT ends the connection', async (t) => {
    const gate = await startGate(t);
    assert.equal(await raw(t, gate, `CONNECT 127.0.0.1:1 HTTP/1.1\r\n${LAST}${AUTHORIZATION}\r\n`), '');
    assert.equal(gate.requests.length, 0);
  });

  test('a WebSocket is refused, with one line', async (t) => {
    const gate = await startGate(t);
    const upgrade = 'Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n';
    const answer = await raw(t, gate, `GET /v1/x HTTP/1.1\r\n${HOST}${AUTHORIZATION}${upgrade}\r\n`);
    assert.equal(status(answer), 400);
    assert.equal(body(answer), 'there is no WebSocket here');
    assert.equal(gate.requests.length, 0);
  });

  test('an offer of another protocol is not taken, and not passed on', async (t) => {
    const gate = await startGate(t);
    const upgrade = 'Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n';
    assert.equal(status(await raw(t, gate, `GET /v1/x HTTP/1.1\r\n${HOST}${AUTHORIZATION}${upgrade}\r\n`)), 200);
    assert.equal(gate.requests[0]?.headers.upgrade, undefined);
    assert.equal(gate.requests[0]?.headers['http2-settings'], undefined);
  });

  test('without a Host is refused, but in HTTP/1.0', async (t) => {
    const gate = await startGate(t);
    assert.equal(status(await raw(t, gate, 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')), 400);
    assert.equal(gate.requests.length, 0);
    assert.equal(status(await raw(t, gate, 'GET /health HTTP/1.0\r\n\r\n')), 200);
  });
});

suite('the Host', () => {
  const HOSTS = ['evil.example', 'gate.example:80', 'svc.internal', 'SVC.internal:9', 'localhost', '127.0.0.1:21118'];
  const statuses = async (t: TestContext, gate: GateUnderTest, path: string) => {
    const answers = HOSTS.map((host) => {
      const headers = `Host: ${host}\r\nConnection: close\r\n${AUTHORIZATION}`;
      return raw(t, gate, `GET ${path} HTTP/1.1\r\n${headers}\r\n`);
    });
    return (await Promise.all(answers)).map(status);
  };

  for (const host of ['127.0.0.1', 'localhost', '::1']) {
    test(`must be this machine or in allowed_hosts where the gate listens on ${host}, on every path`, async (t) => {
      const gate = await startGate(t, { listen: { host, port: 21118 }, allowedHosts: ['svc.internal'] });
      for (const path of ['/health', '/v1/models']) {
        assert.deepEqual(await statuses(t, gate, path), [403, 403, 200, 200, 200, 200]);
      }
      assert.deepEqual(await statuses(t, gate, '/stats'), [403, 403, 404, 404, 404, 404]);
      assert.equal(gate.requests.length, 8);
    });
  }

  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'gate.example']) {
    test(`may be any where the gate listens on ${host}`, async (t) => {
      const gate = await startGate(t, { listen: { host, port: 21118 } });
      assert.deepEqual(await statuses(t, gate, '/health'), [200, 200, 200, 200, 200, 200]);
    });
  }
});

/** A request that is hidden in another one: a reader that sees another end of the first request would find it. */
const HIDDEN = `GET /stats HTTP/1.1\r\n${LAST}\r\n`;
const START = `POST /v1/x HTTP/1.1\r\n${HOST}${AUTHORIZATION}`;

suite('request smuggling', () => {
  for (const [what, bytes] of [
    ['both lengths', `${START}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    [
      'both lengths, the other way',
      `${START}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${HIDDEN}`,
    ],
    ['two lengths', `${START}Content-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
    ['two lengths in one', `${START}Content-Length: 0, ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
    ['a signed length', `${START}Content-Length: +0\r\n\r\n${HIDDEN}`],
    ['a hexadecimal length', `${START}Content-Length: 0x0\r\n\r\n${HIDDEN}`],
    ['a space before the colon', `${START}Content-Length : 0\r\n\r\n${HIDDEN}`],
    ['a coding after chunked', `${START}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['a coding before chunked', `${START}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['chunked twice', `${START}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['an unknown coding', `${START}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['a coding with a sign before it', `${START}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n${HIDDEN}`],
    ['chunks in HTTP/1.0', `${START.replace('1.1', '1.0')}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['a chunk that is longer than it says', `${START}Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n`],
    ['a length of a chunk that is too large', `${START}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n`],
    ['a bare line feed', `${START.replaceAll('\r\n', '\n')}Content-Length: 0\n\n`],
    ['a folded header', `${START}X-A: b\r\n Content-Length: 5\r\nContent-Length: 0\r\n\r\n${HIDDEN}`],
  ] as const) {
    test(`${what}: nothing but whole requests of /v1/ reaches the server`, async (t) => {
      const gate = await startGate(t, {
        answer: (req, res) => {
          req.resume().on('end', () => res.end());
        },
      });
      const answer = await raw(t, gate, bytes);
      // The last answer is that to the hidden request; if the parser finds the fault inside a body, there may be none.
      const last = answer.slice(answer.lastIndexOf('HTTP/1.1 '));
      assert.ok(last === '' || [400, 404].includes(status(last)), answer);
      for (const request of gate.requests) assert.equal(request.url, '/v1/x');
    });
  }

  for (const method of ['PUT', 'PATCH', 'POST']) {
    for (const [framing, sent] of [
      ['a length', `Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
      ['chunks', `Transfer-Encoding: chunked\r\n\r\n${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`],
    ] as const) {
      for (const connection of ['close', 'close, Content-Length, Transfer-Encoding, Host']) {
        const dropped = connection === 'close' ? '' : ', which Connection names,';
        test(`the body of ${method} with ${framing}${dropped} stays a body`, async (t) => {
          const bodies: string[] = [];
          const gate = await startGate(t, {
            answer: async (req, res) => {
              let text = '';
              for await (const chunk of req) text += chunk;
              bodies.push(text);
              res.end();
            },
          });
          await raw(t, gate, `${method} /v1/x HTTP/1.1\r\n${HOST}${AUTHORIZATION}Connection: ${connection}\r\n${sent}`);
          assert.deepEqual(bodies, [HIDDEN]);
          assert.deepEqual(
            gate.requests.map(({ url }) => url),
            ['/v1/x'],
          );
        });
      }
    }
  }
});
