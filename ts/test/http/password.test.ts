import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { type Options, type Received, startServer } from './server-under-test.ts';

const PASSWORD = 'correct horse: battery/staple é&=?';
const KEY = 'k'.repeat(16);
const OPERATORS = ['/', '/recipes', '/stats', '/metrics'];

const basic = (name: string, password: string) => `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;

function guarded(test: TestContext, options: Options = {}) {
  return startServer(test, { password: PASSWORD, ...options });
}

function assertRefused({ status, headers, text }: Received): void {
  assert.deepEqual(
    [status, headers['www-authenticate'], text],
    [401, 'Basic realm="svc"', 'missing or wrong password'],
  );
  assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
}

suite("what is the operator's", () => {
  for (const path of OPERATORS) {
    suite(path, () => {
      test('is open to the password, with any user name or none', async (t) => {
        const { get } = await guarded(t);
        for (const name of ['admin', 'x', '', 'Zoë']) {
          const { status } = await get(path, { Authorization: basic(name, PASSWORD) });
          assert.equal(status, 200, name);
        }
      });

      test('is open to the password in the query, when there is no Basic auth', async (t) => {
        const { get } = await guarded(t);
        const address = `${path}?password=${encodeURIComponent(PASSWORD)}`;
        assert.equal((await get(address)).status, 200);
        assert.equal((await get(address, { Authorization: `Bearer ${KEY}` })).status, 200);
        assertRefused(await get(address, { Authorization: basic('admin', 'wrong') }));
        assertRefused(await get(address, { Authorization: 'Basic' }));
      });

      test('is kept by no cache, loaded by no page of another site, and its address is told to none', async (t) => {
        const { get } = await guarded(t);
        for (const headers of [{}, { Authorization: basic('', PASSWORD) }]) {
          const { headers: received } = await get(path, headers);
          assert.equal(received['cache-control'], 'no-store');
          assert.equal(received['cross-origin-resource-policy'], 'same-origin');
          assert.equal(received['x-content-type-options'], 'nosniff');
          assert.equal(received['referrer-policy'], 'no-referrer');
        }
      });

      test('is closed without it', async (t) => {
        const { get } = await guarded(t);
        assertRefused(await get(path));
        for (const header of [
          basic('admin', 'wrong'),
          basic(PASSWORD, ''),
          basic('admin', `${PASSWORD} `),
          basic('admin', PASSWORD.toUpperCase()),
          `Bearer ${PASSWORD}`.replace('é', 'e'),
          'Basic',
          'Basic !',
        ]) {
          assertRefused(await get(path, { Authorization: header }));
        }
        for (const query of ['password=', 'password=wrong', 'Password=x', `password=${PASSWORD.slice(0, 7)}`]) {
          assertRefused(await get(`${path}?${encodeURI(query)}`));
        }
      });

      test('is open to all when the password is off, whatever they send', async (t) => {
        const { get } = await startServer(t);
        for (const headers of [{}, { Authorization: basic('admin', 'wrong') }, { Authorization: 'Bearer x' }]) {
          assert.equal((await get(path, headers)).status, 200);
        }
        assert.equal((await get(`${path}?password=wrong`)).status, 200);
      });
    });
  }

  test('is no concern of the API key, nor a decision of the password', async (t) => {
    const { get, decide } = await guarded(t, { apiKeys: [KEY] });
    assertRefused(await get('/stats', { Authorization: `Bearer ${KEY}` }));
    assert.equal((await get('/stats', { Authorization: basic('x', PASSWORD) })).status, 200);
    assert.equal((await decide({ headers: { Authorization: basic('x', PASSWORD) } })).status, 401);
    assert.equal((await decide({ headers: { Authorization: `Bearer ${KEY}` } })).status, 200);
  });

  test('has its 401 as JSON for those who take nothing else', async (t) => {
    const { get } = await guarded(t);
    const { status, text } = await get('/stats', { Accept: 'application/json' });
    const message = 'missing or wrong password';
    assert.equal(status, 401);
    assert.deepEqual(JSON.parse(text), {
      error: { code: 401, message },
      detail: { error_type: 'wrong_password', message },
    });
  });

  test('is logged without its query', async (t) => {
    const { get, log } = await guarded(t);
    await get('/stats?password=wrong-password');
    const lines = JSON.stringify(log);
    assert.match(lines, /"path":"\/stats"/);
    assert.doesNotMatch(lines, /wrong-password/);
  });
});
