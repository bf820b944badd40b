import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ANSWER } from '../fake-engine.ts';
import { DECISION, startServer } from './server-under-test.ts';

const PLAYGROUND = { path: '/playground' };
const LOGIN = { Authorization: `Basic ${Buffer.from('me:the operator knows').toString('base64')}` };

suite('POST /playground', () => {
  test('answers as the decision endpoint does: the bytes go to the engine, its bytes come back', async (t) => {
    const { decide, engine } = await startServer(t);
    const [played, decided] = [await decide(PLAYGROUND), await decide()];
    assert.equal(String(engine.calls[0]?.body), DECISION);
    assert.deepEqual([played.status, played.text], [200, ANSWER]);
    for (const name of ['server-timing', 'content-type']) assert.equal(played.headers[name], decided.headers[name]);
  });

  test('refuses with the same words', async (t) => {
    const { decide, engine } = await startServer(t);
    engine.answer = () => ({ failure: { code: 'missing_criteria', message: 'q: missing criteria' } });
    const { status, text } = await decide(PLAYGROUND);
    assert.deepEqual([status, text], [400, 'q: missing criteria']);
    assert.equal((await decide({ ...PLAYGROUND, body: 'a'.repeat(2000) })).status, 413);
  });

  test('counts like any other decision', async (t) => {
    const { decide, stats } = await startServer(t);
    await decide(PLAYGROUND);
    assert.deepEqual([stats.requests, stats.questions, stats.recent()[0]?.status], [1, 6, 200]);
  });

  test('is the operator’s', async (t) => {
    const { decide, engine } = await startServer(t, { password: 'the operator knows' });
    assert.equal((await decide(PLAYGROUND)).status, 401);
    assert.equal((await decide({ ...PLAYGROUND, headers: LOGIN })).status, 200);
    assert.equal(engine.calls.length, 1);
  });

  test('is not for pages of another site, not even listed ones', async (t) => {
    const other = 'https://other.example';
    const { decide, engine } = await startServer(t, { config: { corsOrigins: [other] } });
    for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: other }]) {
      assert.equal((await decide({ ...PLAYGROUND, headers })).status, 403);
    }
    assert.equal(engine.calls.length, 0);
  });

  test('needs the API key where the password is off and the key is on', async (t) => {
    const key = '0123456789abcdef';
    const { decide } = await startServer(t, { apiKeys: [key] });
    assert.equal((await decide(PLAYGROUND)).headers['www-authenticate'], 'Bearer');
    assert.equal((await decide({ ...PLAYGROUND, headers: { Authorization: `Bearer ${key}` } })).status, 200);
  });
});
