import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Value } from 'typebox/value';
import { OpenAiErrorSchema } from '../../src/schemas/wire.ts';
import { ANSWER } from '../fake-engine.ts';
import { type Sent, startServer } from './server-under-test.ts';

const PATH = '/v1/decisions';
const KEY = 'k'.repeat(16);

suite('POST /v1/decisions', () => {
  test("gives the body to the engine as it came, in OpenAI's shape, and its answer back", async (t) => {
    const { decide, engine, stats } = await startServer(t);
    const { status, text, headers } = await decide({ path: PATH, body: '{"input": 1.0}' });
    assert.deepEqual([status, text], [200, ANSWER]);
    assert.match(String(headers['server-timing']), /^encode;dur=1\.23, .*total;dur=7\.10$/);
    const call = await engine.called();
    assert.deepEqual([call.body.toString(), call.format], ['{"input": 1.0}', 'decisions']);
    assert.equal(stats.requests, 1);
  });

  test('leaves the format of /v1/systemone what it is', async (t) => {
    const { decide, engine } = await startServer(t);
    await decide();
    assert.equal((await engine.called()).format, undefined);
  });

  test('names the part of the request that is wrong', async (t) => {
    const { decide, engine } = await startServer(t);
    const failure = { code: 'bad_field', message: 'input[0].role: unknown role', param: 'input[0].role' };
    engine.answer = () => ({ failure });
    const { status, text, headers } = await decide({ path: PATH, headers: { Accept: 'text/plain' } });
    assert.deepEqual([status, headers['content-type']], [400, 'application/json; charset=utf-8']);
    const { code, message, param } = failure;
    assert.deepEqual(JSON.parse(text), { error: { message, type: 'invalid_request_error', param, code } });
  });

  const refusals: [string, number, string, Sent][] = [
    ['another method', 405, 'method_not_allowed', { method: 'GET' }],
    ['a body that is too large', 413, 'body_too_large', { body: ' '.repeat(1001) }],
    ['an unknown encoding', 415, 'unsupported_encoding', { headers: { 'Content-Encoding': 'zip' } }],
    ['a page of another site', 403, 'cross_site', { headers: { Origin: 'https://elsewhere.example' } }],
    ['another Host', 403, 'bad_host', { headers: { Host: 'elsewhere.example' } }],
  ];
  for (const [what, status, code, sent] of refusals) {
    test(`refuses ${what} with ${status} in OpenAI's format`, async (t) => {
      const { decide } = await startServer(t);
      const { status: received, text } = await decide({ path: PATH, ...sent });
      const body = JSON.parse(text);
      assert.equal(received, status);
      assert.ok(Value.Check(OpenAiErrorSchema, body), text);
      assert.deepEqual([body.error.code, body.error.param], [code, null]);
    });
  }

  test('says that a failure of the engine is the fault of the server', async (t) => {
    const { decide, engine } = await startServer(t);
    for (const code of ['model_failed', 'panicked']) {
      engine.answer = () => ({ failure: { code, message: 'the model failed' } });
      const { status, text } = await decide({ path: PATH });
      const error = { message: 'the model failed', type: 'server_error', param: null, code };
      assert.deepEqual([status, JSON.parse(text)], [500, { error }]);
    }
  });

  test('says when to come again', async (t) => {
    const { decide } = await startServer(t, { isLoading: true });
    const { status, text, headers } = await decide({ path: PATH });
    assert.deepEqual([status, headers['retry-after'], JSON.parse(text).error.type], [503, '1', 'server_error']);
  });

  test("refuses a wrong key with the interface's body", async (t) => {
    const { decide } = await startServer(t, { apiKeys: [KEY] });
    const { status, text, headers } = await decide({ path: PATH });
    assert.deepEqual([status, text], [401, '{"error":"missing or wrong API key"}']);
    assert.equal(headers['www-authenticate'], 'Bearer');
    assert.equal((await decide({ path: PATH, headers: { Authorization: `Bearer ${KEY}` } })).status, 200);
  });
});
