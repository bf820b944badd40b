import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ANSWER } from '../fake-engine.ts';
import { DECISION, startServer, Wire } from './server-under-test.ts';

const UNAUTHORIZED = '{"error":"missing or wrong API key"}';

suite('the API key', () => {
  for (const authorization of ['Bearer new-key', 'bearer new-key', 'Bearer   new-key', 'Bearer old-key']) {
    test(`"${authorization}" passes when old and new key are set`, async (t) => {
      const { decide } = await startServer(t, { apiKeys: ['old-key', 'new-key'] });
      assert.equal((await decide({ headers: { Authorization: authorization } })).status, 200);
    });
  }

  for (const authorization of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    'new-key',
    'Basic new-key',
    'Bearer new-key x',
    'Bearernew-key',
    'Bearer NEW-KEY',
  ]) {
    test(`"${authorization}" gives 401, as JSON whatever is accepted`, async (t) => {
      const { engine, decide } = await startServer(t, { apiKeys: ['old-key', 'new-key'] });
      const given = authorization === undefined ? {} : { Authorization: authorization };
      for (const accept of ['text/plain', 'application/json']) {
        const { status, headers, text } = await decide({ headers: { ...given, Accept: accept } });
        assert.deepEqual([status, text], [401, UNAUTHORIZED]);
        assert.equal(headers['www-authenticate'], 'Bearer');
        assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      }
      assert.equal(engine.calls.length, 0);
    });
  }

  test('is ignored when it is off', async (t) => {
    const { decide } = await startServer(t);
    assert.equal((await decide({ headers: { Authorization: 'Bearer anything' } })).status, 200);
  });

  test('is checked before the body is read', async (t) => {
    const { port } = await startServer(t, { apiKeys: ['key'] });
    const wire = await Wire.open(t, port);
    wire.send('POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n');
    assert.match(await wire.receives(UNAUTHORIZED), /^HTTP\/1.1 401 /);
  });

  test('guards the list of models, but neither health nor probes', async (t) => {
    const { get } = await startServer(t, { apiKeys: ['key'] });
    const paths = ['/v1/models', '/health', '/livez', '/readyz'];
    const statuses = await Promise.all(paths.map(async (path) => (await get(path)).status));
    assert.deepEqual(statuses, [401, 200, 200, 200]);
    assert.equal((await get('/v1/models', { Authorization: 'Bearer key' })).status, 200);
  });

  test('that is wrong leaves the connection fit for the next request', async (t) => {
    const { port } = await startServer(t, { apiKeys: ['key'] });
    const wire = await Wire.open(t, port);
    const length = `Content-Length: ${DECISION.length}`;
    wire.send(`POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\n${length}\r\n\r\n${DECISION}`);
    await wire.receives(UNAUTHORIZED);
    wire.send(
      `POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\n${length}\r\nAuthorization: Bearer key\r\n\r\n${DECISION}`,
    );
    await wire.receives(ANSWER);
  });
});

suite('the Host of a server on a loopback address', () => {
  for (const host of [
    'localhost',
    'localhost:21118',
    'LOCALHOST:1',
    'svc.localhost:1',
    '127.0.0.1:21118',
    '127.9.8.7',
    '[::1]',
    '[::1]:21118',
  ]) {
    test(`may be ${host}`, async (t) => {
      const { decide } = await startServer(t);
      assert.equal((await decide({ headers: { Host: host } })).status, 200);
    });
  }

  for (const host of [
    'evil.example',
    'evil.example:21118',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evillocalhost',
    '10.0.0.1',
    '[::2]:1',
    '127.0.0.1@evil.example',
    'localhost:1:2',
  ]) {
    test(`may not be "${host}", on any route`, async (t) => {
      const { engine, decide, get } = await startServer(t, { apiKeys: ['key'] });
      const { status, text } = await decide({ headers: { Host: host } });
      assert.deepEqual([status, text], [403, 'Host not allowed; list it in allowed_hosts']);
      assert.equal((await get('/health', { Host: host })).status, 403);
      assert.equal((await get('/nothing', { Host: host })).status, 403);
      assert.equal(engine.calls.length, 0);
    });
  }

  test('may be one that allowed_hosts lists, with any port or with the one it names', async (t) => {
    const { decide } = await startServer(t, {
      config: { allowedHosts: ['Svc.Example', 'other.example:80', '[fd00::1]'] },
    });
    const hosts = ['svc.example', 'SVC.example:1234', 'other.example:80', 'other.example', 'other.example:81'];
    const statuses = await Promise.all(hosts.map(async (host) => (await decide({ headers: { Host: host } })).status));
    assert.deepEqual(statuses, [200, 200, 200, 403, 403]);
    assert.equal((await decide({ headers: { Host: '[fd00::1]:1' } })).status, 200);
  });

  test('is looked at again for each request', async (t) => {
    const { get } = await startServer(t);
    const hosts = ['localhost', 'evil.example', 'localhost', 'evil.example'];
    const statuses = [];
    for (const host of hosts) statuses.push((await get('/livez', { Host: host })).status);
    assert.deepEqual(statuses, [200, 403, 200, 403]);
  });

  test('may not be empty', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send('GET /livez HTTP/1.1\r\nHost:\r\n\r\n');
    assert.match(await wire.receives('allowed_hosts'), /^HTTP\/1.1 403 /);
  });

  test('may be missing in HTTP/1.0', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send('GET /livez HTTP/1.0\r\n\r\n');
    assert.match(await wire.ends(), /^HTTP\/1.1 200 OK\r\n/);
  });

  test('is wanted in HTTP/1.1, and its absence is answered with a request id', async (t) => {
    const { port } = await startServer(t);
    const wire = await Wire.open(t, port);
    wire.send('GET /livez HTTP/1.1\r\nx-request-id: mine\r\n\r\n');
    const answer = await wire.receives('Host header missing');
    assert.match(answer, /^HTTP\/1.1 400 Bad Request\r\n/);
    assert.match(answer, /\r\nx-typesafe-request-id: mine\r\n/);
  });
});

test('the Host of a server on a public address may be any', async (t) => {
  const { decide } = await startServer(t, { config: { listen: { host: '0.0.0.0', port: 0 } } });
  assert.equal((await decide({ headers: { Host: 'svc.example' } })).status, 200);
});

suite('a decision that a web page asks for', () => {
  const refused = { status: 403, text: 'cross-site request refused; list its origin in cors_origins' };

  for (const headers of [
    { Origin: 'https://evil.example' },
    { Origin: 'null' },
    { Origin: '' },
    { Origin: 'http://localhost:1' },
    { Origin: 'http://localhost.evil.example:21118' },
    { Origin: 'chrome-extension://localhost:21118' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://localhost:21118' },
  ]) {
    test(`with ${JSON.stringify(headers)} gets 403, before the key is looked at and without CORS headers`, async (t) => {
      const { engine, decide } = await startServer(t, {
        apiKeys: ['key'],
        config: { corsOrigins: ['https://app.example'] },
      });
      const { status, text, headers: received } = await decide({ headers: { Host: 'localhost:21118', ...headers } });
      assert.deepEqual({ status, text }, refused);
      assert.equal(received['access-control-allow-origin'], undefined);
      assert.equal(engine.calls.length, 0);
    });
  }

  for (const headers of [
    {},
    { Origin: 'http://localhost:21118' },
    { Origin: 'https://LOCALHOST:21118' },
    { Origin: 'http://localhost:21118', 'Sec-Fetch-Site': 'same-origin' },
    { 'Sec-Fetch-Site': 'none' },
    { 'Sec-Fetch-Site': 'same-origin' },
    { Origin: 'https://app.example', 'Sec-Fetch-Site': 'cross-site' },
  ]) {
    test(`with ${JSON.stringify(headers)} is answered`, async (t) => {
      const { decide } = await startServer(t, { config: { corsOrigins: ['https://app.example'] } });
      assert.equal((await decide({ headers: { Host: 'localhost:21118', ...headers } })).status, 200);
    });
  }

  test('is not stopped by X-Forwarded headers, which are ignored', async (t) => {
    const { decide } = await startServer(t);
    const headers = { 'X-Forwarded-For': '203.0.113.7', 'X-Forwarded-Host': 'evil.example' };
    assert.equal((await decide({ headers })).status, 200);
  });
});

suite('CORS', () => {
  const corsOrigins = ['https://app.example', 'http://localhost:3000'];
  const preflight = {
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': 'authorization,x-own',
  };
  const corsHeaders = (headers: object) => Object.keys(headers).filter((name) => name.startsWith('access-control-'));

  test('sends no header when cors_origins is empty', async (t) => {
    const { decide, get } = await startServer(t);
    const answers = [
      await get('/health', { Origin: 'https://app.example' }),
      await decide({ headers: { Origin: 'https://app.example' } }),
      await decide({ method: 'OPTIONS', headers: { Origin: 'https://app.example', ...preflight } }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 403, 405],
    );
    for (const { headers } of answers) assert.deepEqual(corsHeaders(headers), []);
  });

  test('lets a listed origin read answers and errors', async (t) => {
    const { decide } = await startServer(t, { config: { corsOrigins } });
    const headers = { Origin: 'https://app.example' };
    for (const { headers: received } of [
      await decide({ headers }),
      await decide({ headers, body: 'a'.repeat(2000) }),
    ]) {
      assert.equal(received['access-control-allow-origin'], 'https://app.example');
      assert.match(String(received['access-control-expose-headers']), /Server-Timing.*x-request-id/);
      assert.equal(received.vary, 'Origin');
      assert.equal(received['access-control-allow-credentials'], undefined);
    }
  });

  test('answers the preflight of a listed origin without key and engine', async (t) => {
    const { engine, decide } = await startServer(t, { apiKeys: ['key'], config: { corsOrigins } });
    const headers = { Origin: 'http://localhost:3000', ...preflight };
    const { status, headers: received, text } = await decide({ method: 'OPTIONS', headers, body: '' });
    assert.deepEqual([status, text], [204, '']);
    assert.equal(received['access-control-allow-origin'], 'http://localhost:3000');
    assert.match(String(received['access-control-allow-methods']), /POST/);
    assert.equal(received['access-control-allow-headers'], 'authorization,x-own');
    assert.equal(received.vary, 'Origin, Access-Control-Request-Headers');
    assert.ok(received['x-request-id']);
    assert.equal(engine.calls.length, 0);
  });

  test('answers no preflight of an origin that is not listed', async (t) => {
    const { decide } = await startServer(t, { config: { corsOrigins } });
    const { status, headers } = await decide({
      method: 'OPTIONS',
      headers: { Origin: 'https://evil.example', ...preflight },
    });
    assert.equal(status, 405);
    assert.deepEqual(corsHeaders(headers), []);
  });

  test('takes OPTIONS that is no preflight for a wrong method', async (t) => {
    const { decide } = await startServer(t, { config: { corsOrigins } });
    assert.equal((await decide({ method: 'OPTIONS', headers: { Origin: 'https://app.example' } })).status, 405);
  });

  test('answers vary by origin also for those who are not listed', async (t) => {
    const { get } = await startServer(t, { config: { corsOrigins } });
    assert.equal((await get('/health')).headers.vary, 'Origin');
  });
});
