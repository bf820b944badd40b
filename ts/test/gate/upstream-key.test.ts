import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { until } from '../until.ts';
import { KEY, startGate } from './gate-under-test.ts';

const SERVER_KEY = 'the-key-of-the-server';
const REFUSED = 'the server behind the gate refuses the key of the gate';

/** The server's own answer to a wrong key. */
const unauthorized = {
  status: 401,
  headers: { 'WWW-Authenticate': 'Bearer', 'Content-Type': 'application/json; charset=utf-8' },
  body: '{"error":"missing or wrong API key"}',
};

suite('the key of the server behind the gate', () => {
  test('goes with what needs a key, in the place of the key of the gate, and with nothing else', async (t) => {
    const gate = await startGate(t, { upstreamKey: SERVER_KEY });
    const headers = { authorization: `Bearer ${KEY}` };
    for (const path of ['/v1/systemone', '/v1/models', '/health']) {
      assert.equal((await fetch(`http://127.0.0.1:${gate.port}${path}`, { headers })).status, 200);
    }
    const sent = gate.requests.map(({ headers: { authorization } }) => authorization);
    assert.deepEqual(sent, [`Bearer ${SERVER_KEY}`, `Bearer ${SERVER_KEY}`, undefined]);
  });

  test('is not lent to whoever has no key for the gate', async (t) => {
    const gate = await startGate(t, { upstreamKey: SERVER_KEY });
    for (const authorization of ['', `Bearer ${SERVER_KEY}`]) {
      const response = await fetch(`http://127.0.0.1:${gate.port}/v1/x`, { headers: { authorization } });
      assert.equal(response.status, 401);
    }
    assert.equal(gate.requests.length, 0);
  });

  for (const [upstreamKey, why] of [
    [undefined, 'it has none: set GATE_UPSTREAM_KEY'],
    [SERVER_KEY, 'GATE_UPSTREAM_KEY is not its key'],
  ] as const) {
    test(`that the server refuses is 502 for the caller, and for the log: ${why}`, async (t) => {
      const gate = await startGate(t, {
        ...(upstreamKey && { upstreamKey }),
        answer: (_, res) => res.writeHead(unauthorized.status, unauthorized.headers).end(unauthorized.body),
      });
      const headers = { authorization: `Bearer ${KEY}` };
      for (const path of ['/v1/x', '/health']) {
        const response = await fetch(`http://127.0.0.1:${gate.port}${path}`, { headers });
        assert.equal(response.status, 502);
        assert.equal(await response.text(), REFUSED);
        assert.equal(response.headers.get('www-authenticate'), null);
      }
      const lines = gate.log.map(({ level, msg, code }) => [level, msg, code]);
      const [error, request] = [
        [50, `${REFUSED}: ${why}`, undefined],
        [30, 'request', 'upstream_refused'],
      ];
      assert.deepEqual(lines, [error, request, error, request]);
    });
  }

  test('that the server refuses without end ends with the answer', async (t) => {
    let isClosed = false;
    const gate = await startGate(t, {
      answer: (_, res) => {
        res.writeHead(401);
        const timer = setInterval(() => res.write('more'), 5);
        res.on('close', () => {
          clearInterval(timer);
          isClosed = true;
        });
      },
    });
    const response = await fetch(`http://127.0.0.1:${gate.port}/health`);
    assert.equal(response.status, 502);
    await until(() => isClosed);
    assert.ok(!gate.log.some(({ msg }) => msg === 'the server failed'));
  });
});
