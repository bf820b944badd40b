import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { Value } from 'typebox/value';
import { ERROR_STATUS, STARTUP_CODES } from '../../src/errors.ts';
import { ErrorBodySchema } from '../../src/schemas/wire.ts';
import { type LogLine, startServer, Wire } from './server-under-test.ts';

const REFUSED = { code: 'unknown_type', message: 'q: unknown type "x"' };

test('docs/errors.md and errors.ts have the same codes with the same status', () => {
  const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` \| ([\w-]+) \| [^|]+ \| [^|]+ \| [^|]+ \|$/gm)].map(
    ([, code, status]) => [code, status],
  );
  const list = Object.entries(ERROR_STATUS).map(([code, status]) => [
    code,
    [...STARTUP_CODES].some((startup) => startup === code) ? 'start-up' : String(status),
  ]);
  assert.deepEqual(rows.toSorted(), list.toSorted());
});

suite('a failure of the engine', () => {
  for (const [code, status] of Object.entries(ERROR_STATUS)) {
    if (code === 'cancelled' || code === 'unauthorized') continue;
    test(`"${code}" gives ${status} with the engine's message as it is`, async (t) => {
      const { engine, decide } = await startServer(t);
      engine.answer = () => ({ failure: { code, message: 'q: says “why”' } });
      const { status: received, text, headers } = await decide();
      assert.deepEqual([received, text], [status, 'q: says “why”']);
      assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(headers['retry-after'], status === 503 ? '1' : undefined);
    });
  }

  for (const [seconds, header] of [
    [7, '7'],
    [2.1, '3'],
    [0, '1'],
  ] as const) {
    test(`that asks for ${seconds} s of patience gives Retry-After: ${header}`, async (t) => {
      const { engine, decide } = await startServer(t);
      engine.answer = () => ({ failure: { code: 'queue_full', message: 'full', retryAfterSeconds: seconds } });
      const { status, headers } = await decide();
      assert.deepEqual([status, headers['retry-after']], [503, header]);
    });
  }

  test('with a code that is not in the list gives 500 and is logged', async (t) => {
    const { engine, decide, log } = await startServer(t);
    engine.answer = () => ({ failure: { code: 'toString', message: 'secret' } });
    const { status, text } = await decide();
    assert.deepEqual([status, text], [500, 'internal error']);
    assert.equal(log[0]?.level, 50);
  });

  test('that is thrown gives 500 without its text, which is logged with the id of the request', async (t) => {
    const { engine, decide, log } = await startServer(t);
    engine.answer = () => Promise.reject(new Error('/secret/path'));
    const { status, text, headers } = await decide();
    assert.deepEqual([status, text], [500, 'internal error']);
    assert.ok(!JSON.stringify(headers).includes('secret'));
    assert.equal(log[0]?.level, 50);
    assert.equal(log[0]?.id, headers['x-request-id']);
    assert.match(JSON.stringify(log[0]), /secret/);
  });

  test('of 500 is logged, and the server lives', async (t) => {
    const { engine, decide, log, get } = await startServer(t);
    engine.answer = () => ({ failure: { code: 'panicked', message: 'the engine failed on this request' } });
    assert.equal((await decide()).status, 500);
    assert.deepEqual([log[0]?.level, log[0]?.msg], [50, 'the engine failed on this request']);
    assert.equal((await get('/livez')).status, 200);
  });
});

suite('the body of an error', () => {
  const json = {
    error: { code: 400, message: REFUSED.message },
    detail: { error_type: REFUSED.code, message: REFUSED.message },
  };

  for (const accept of [
    'application/json',
    'Application/JSON; q=0.5',
    'application/json, text/html',
    'application/json, text/plain;q=0, */*;q=0.0',
  ]) {
    test(`is JSON when the request accepts "${accept}"`, async (t) => {
      const { engine, decide } = await startServer(t);
      engine.answer = () => ({ failure: REFUSED });
      const { status, headers, text } = await decide({ headers: { Accept: accept } });
      assert.equal(status, 400);
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      assert.deepEqual(JSON.parse(text), json);
      assert.ok(Value.Check(ErrorBodySchema, JSON.parse(text)));
    });
  }

  for (const accept of [
    undefined,
    '',
    '*/*',
    'text/plain',
    'application/json, text/plain, */*',
    'application/json, */*;q=0.1',
    'text/*, application/json',
    'application/*',
    'application/json;q=0',
    'application/jsonp',
  ]) {
    test(`is one line of plain text when the request accepts "${accept}"`, async (t) => {
      const { engine, decide } = await startServer(t);
      engine.answer = () => ({ failure: REFUSED });
      const { status, headers, text } = await decide({ headers: accept === undefined ? {} : { Accept: accept } });
      assert.equal(status, 400);
      assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(text, REFUSED.message);
    });
  }

  test('is JSON for every kind of error', async (t) => {
    const { get, decide } = await startServer(t);
    const headers = { Accept: 'application/json' };
    const answers = [
      await get('/nothing', headers),
      await get('/v1/systemone', headers),
      await decide({ headers, body: 'a'.repeat(2000) }),
    ];
    for (const { status, text } of answers) assert.equal(JSON.parse(text).error.code, status);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 405, 413],
    );
  });
});

suite('unknown paths and methods', () => {
  for (const path of [
    '/v1',
    '/v1/systemone/',
    '/V1/systemone',
    '//v1/systemone',
    '/v1/systemone%2f',
    '/healthz',
    '/__proto__',
  ]) {
    test(`${path} gives 404`, async (t) => {
      const { engine, decide } = await startServer(t, { apiKeys: ['k'] });
      const { status, text } = await decide({ path });
      assert.deepEqual([status, text], [404, 'not found']);
      assert.equal(engine.calls.length, 0);
    });
  }

  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
    test(`${method} on the decision route gives 405 with Allow: POST, before the key is looked at`, async (t) => {
      const { decide } = await startServer(t, { apiKeys: ['k'] });
      const { status, headers, text } = await decide({ method });
      assert.deepEqual([status, headers.allow, text], [405, 'POST', 'method not allowed; use POST']);
    });
  }

  test('HEAD on the decision route gives 405 with Allow: POST and no body', async (t) => {
    const { decide } = await startServer(t, { apiKeys: ['k'] });
    const { status, headers, text } = await decide({ method: 'HEAD' });
    assert.deepEqual([status, headers.allow, text], [405, 'POST', '']);
  });

  test('a query does not change the route', async (t) => {
    const { decide } = await startServer(t);
    assert.equal((await decide({ path: '/v1/systemone?a=b' })).status, 200);
  });
});

suite('the request id', () => {
  for (const id of ['a', '~!"#', 'x'.repeat(128)]) {
    test(`of the caller is taken: ${id}`, async (t) => {
      const { decide } = await startServer(t);
      const { headers } = await decide({ headers: { 'X-Request-Id': id } });
      assert.deepEqual([headers['x-request-id'], headers['x-typesafe-request-id']], [id, id]);
    });
  }

  for (const id of [undefined, '', 'x'.repeat(129), 'a b', 'caf\xe9', ['a', 'b']]) {
    test(`is a new one instead of ${JSON.stringify(id)}`, async (t) => {
      const { decide } = await startServer(t);
      const headers = id === undefined ? {} : { 'X-Request-Id': id };
      const [first, second] = [await decide({ headers }), await decide({ headers })];
      assert.match(String(first.headers['x-request-id']), /^[0-9a-f-]{36}$/);
      assert.equal(first.headers['x-typesafe-request-id'], first.headers['x-request-id']);
      assert.notEqual(second.headers['x-request-id'], first.headers['x-request-id']);
    });
  }

  test('is in every kind of answer', async (t) => {
    const { engine, get, decide, lifecycle } = await startServer(t, { apiKeys: ['key'] });
    const headers = { 'X-Request-Id': 'mine' };
    const known = { ...headers, Authorization: 'Bearer key' };
    const answers = [
      await get('/health', headers),
      await get('/nothing', headers),
      await get('/v1/systemone', headers),
      await get('/livez', { ...headers, Host: 'evil.example' }),
      await decide({ headers }),
      await decide({ headers: known }),
      await decide({ headers: known, body: 'a'.repeat(2000) }),
      await decide({ headers: { ...known, 'Content-Encoding': 'zip' } }),
    ];
    engine.answer = () => Promise.reject(new Error());
    answers.push(await decide({ headers: known }));
    lifecycle.advance('draining');
    answers.push(await decide({ headers: known }));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 405, 403, 401, 200, 413, 415, 500, 503],
    );
    for (const { headers: received } of answers) {
      assert.deepEqual([received['x-request-id'], received['x-typesafe-request-id']], ['mine', 'mine']);
    }
  });
});

suite('the log', () => {
  test('has one line a request, with what it was made of', async (t) => {
    const { decide, log } = await startServer(t);
    await decide({ headers: { 'X-Request-Id': 'mine' }, path: '/v1/systemone?password=hidden' });
    assert.equal(log.length, 1);
    const { level, msg, id, method, path, status, code, ms, questions, tokens } = log[0] as LogLine;
    assert.deepEqual(
      { level, msg, id, method, path, status, code, questions, tokens },
      {
        level: 30,
        msg: 'request',
        id: 'mine',
        method: 'POST',
        path: '/v1/systemone',
        status: 200,
        code: undefined,
        questions: 6,
        tokens: 40,
      },
    );
    assert.ok(typeof ms === 'number' && ms >= 0 && ms < 5000);
  });

  test('has the code of an error', async (t) => {
    const { engine, decide, log } = await startServer(t);
    engine.answer = () => ({ failure: REFUSED });
    await decide();
    assert.deepEqual([log[0]?.status, log[0]?.code], [400, 'unknown_type']);
  });

  for (const [target, status, path] of [
    ['//u:PASS@h/stats', 404, '/…@h/stats'],
    ['/u:PASS@h/stats', 404, '/…@h/stats'],
    ['///u:PASS@h/stats', 404, '/…@h/stats'],
    ['/v1//u:PASS@h/x', 404, '/…@h/x'],
    ['//u:PA@SS@h/x', 404, '/…@h/x'],
    ['//u:PA/SS@h/x', 404, '/…@h/x'],
    ['//u:PA?SS@h/x', 404, '/…'],
    ['//u:PA#SS@h/x', 400, undefined],
    ['http://u:PASS@h/stats', 200, '/stats'],
    ['http://u:PA/SS@h/x', 400, undefined],
    ['http://u:PA?SS@h/x', 400, undefined],
    ['http://u:PASS@h:xx/x', 400, undefined],
    ['http:u:PASS@h/x', 400, undefined],
  ] as const) {
    test(`never has a name and a password of ${target}, nor has stderr`, async (t) => {
      const warning = t.mock.method(process, 'emitWarning', () => {});
      const { port, log } = await startServer(t);
      const wire = await Wire.open(t, port);
      wire.send(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      assert.match(await wire.ends(), new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.deepEqual([log.length, log[0]?.path], [1, path]);
      assert.doesNotMatch(JSON.stringify(log), /PA|SS/);
      assert.equal(warning.mock.callCount(), 0);
    });
  }

  test('never has the state, the answer, a key, a message or a query', async (t) => {
    const { engine, decide, log } = await startServer(t, { apiKeys: ['key-0123456789abc'] });
    const headers = { Authorization: 'Bearer key-0123456789abc', Cookie: 'cookie-value' };
    await decide({ headers, body: '{"state":"the-state"}', path: '/v1/systemone?password=the-query' });
    await decide({ headers: { Authorization: 'Bearer wrong-key' } });
    engine.answer = () => ({ failure: { code: 'unknown_type', message: 'the-message' } });
    await decide({ headers });
    const text = JSON.stringify(log);
    assert.equal(log.length, 3);
    for (const secret of [
      'the-state',
      '"answers',
      'key-0123456789abc',
      'wrong-key',
      'cookie-value',
      'the-query',
      'the-message',
    ]) {
      assert.ok(!text.includes(secret), secret);
    }
  });

  test('cuts a path that is very long', async (t) => {
    const { get, log } = await startServer(t);
    await get(`/${'a'.repeat(5000)}`);
    assert.equal(String(log[0]?.path).length, 200);
  });
});
