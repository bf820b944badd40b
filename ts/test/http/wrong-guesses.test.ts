import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { WrongGuesses } from '../../src/server/middleware/wrong-guesses.ts';
import { type Received, type ServerUnderTest, startServer } from './server-under-test.ts';

const PASSWORD = 'correct horse battery';
const KEY = 'k'.repeat(16);
const AT_ONCE = 19;

/** One wrong guess from `address`; its answer is late if it does not come in this turn of the event loop. */
class Guess {
  readonly #res = new EventEmitter();
  #isAnswered = false;

  constructor(guesses: WrongGuesses, address: string) {
    const req = { socket: { remoteAddress: address } } as IncomingMessage;
    guesses.note({ req, res: this.#res as ServerResponse }).then(() => {
      this.#isAnswered = true;
    });
  }

  async isLate(): Promise<boolean> {
    await turn();
    return !this.#isAnswered;
  }

  hangUp(): void {
    this.#res.emit('close');
  }
}

function guess(guesses: WrongGuesses, address: string, times = 1): Guess[] {
  return Array.from({ length: times }, () => new Guess(guesses, address));
}

async function late(made: readonly Guess[]): Promise<number> {
  const found = await Promise.all(made.map((one) => one.isLate()));
  return found.filter(Boolean).length;
}

/**
 * Returns a function that makes guesses and counts the late ones. Their callers hang up when the test ends, so that no
 * answer is left to wait for.
 */
function guessesOf(t: TestContext, guesses: WrongGuesses) {
  const made: Guess[] = [];
  t.after(() => {
    for (const one of made) one.hangUp();
  });
  return (address: string, times = 1) => {
    const now = guess(guesses, address, times);
    made.push(...now);
    return late(now);
  };
}

suite('wrong guesses', () => {
  test('are answered at once up to the 19th in a minute, and late from the 20th', async (t) => {
    let now = 0;
    const lateOnes = guessesOf(t, new WrongGuesses(() => now));
    assert.equal(await lateOnes('a', AT_ONCE), 0);
    now = 59_999;
    assert.equal(await lateOnes('a', 3), 3);
  });

  test('are counted in whatever minute holds most of them', async (t) => {
    let now = 0;
    const lateOnes = guessesOf(t, new WrongGuesses(() => now));
    await lateOnes('a', 10);
    now = 50_000;
    assert.equal(await lateOnes('a', 9), 0);
    now = 60_000;
    // The first ten are a minute old and no longer count, so the next guess is the 10th.
    assert.equal(await lateOnes('a', 10), 0);
    assert.equal(await lateOnes('a'), 1);
  });

  test('of one address do not slow down another', async (t) => {
    const lateOnes = guessesOf(t, new WrongGuesses());
    await lateOnes('a', AT_ONCE + 1);
    assert.equal(await lateOnes('b'), 0);
    assert.equal(await lateOnes('a'), 1);
  });

  test('in parallel are late one and all', async (t) => {
    const lateOnes = guessesOf(t, new WrongGuesses());
    assert.equal(await lateOnes('a', AT_ONCE + 1000), 1000);
  });

  test('of those who have gone wait no more', async () => {
    const guesses = new WrongGuesses();
    const made = guess(guesses, 'a', AT_ONCE + 3);
    assert.equal(await late(made), 3);
    for (const one of made) one.hangUp();
    assert.equal(await late(made), 0);
  });

  test('are remembered of a bounded number of addresses, the quietest forgotten first', async (t) => {
    const lateOnes = guessesOf(t, new WrongGuesses());
    await lateOnes('loud', AT_ONCE);
    await lateOnes('quiet', AT_ONCE);
    for (let i = 0; i < 9999; i += 1) {
      if (i === 5000) await lateOnes('loud');
      await lateOnes(`other ${i}`);
    }
    assert.equal(await lateOnes('loud'), 1);
    assert.equal(await lateOnes('quiet'), 0);
  });
});

suite('over HTTP', { timeout: 30_000 }, () => {
  const wrongKey = (headers: OutgoingHttpHeaders = {}) => ({ headers: { Authorization: 'Bearer wrong', ...headers } });

  /** Returns a server whose answers are late by a clock that stands still until the test moves it. */
  async function startGuarded(t: TestContext): Promise<ServerUnderTest> {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    return startServer(t, { apiKeys: [KEY], password: PASSWORD });
  }

  /** Returns the answer, and fails if it comes before a whole second is over by the mocked clock. */
  async function afterASecond(t: TestContext, { get }: ServerUnderTest, asked: Promise<Received>): Promise<Received> {
    let isAnswered = false;
    asked.then(() => {
      isAnswered = true;
    });
    // Other callers that ask later are answered in the meantime.
    for (const ms of [0, 999]) {
      t.mock.timers.tick(ms);
      for (let others = 0; others < 3; others += 1) assert.equal((await get('/livez')).status, 200);
      assert.equal(isAnswered, false);
    }
    t.mock.timers.tick(1);
    return asked;
  }

  test('the 401 is the same, a second late, and the right credential is never late', async (t) => {
    const server = await startGuarded(t);
    for (let i = 0; i < AT_ONCE; i += 1) {
      const headers = { 'X-Forwarded-For': `10.0.0.${i}`, Forwarded: `for=10.0.0.${i}` };
      const asked = i % 2 ? server.decide(wrongKey(headers)) : server.get('/stats?password=wrong', headers);
      assert.equal((await asked).status, 401);
    }
    for (const [ask, text, challenge] of [
      [() => server.decide(wrongKey()), '{"error":"missing or wrong API key"}', 'Bearer'],
      [() => server.get('/stats?password=x'), 'missing or wrong password', 'Basic realm="svc"'],
      [() => server.get('/metrics', { Authorization: 'Basic eDp4' }), 'missing or wrong password', 'Basic realm="svc"'],
    ] as const) {
      const { status, headers, text: got } = await afterASecond(t, server, ask());
      assert.deepEqual([status, headers['www-authenticate'], got], [401, challenge, text]);
    }
    // The clock stands still, so a late answer would never come.
    assert.equal((await server.decide({ headers: { Authorization: `Bearer ${KEY}` } })).status, 200);
    assert.equal((await server.get(`/stats?password=${encodeURIComponent(PASSWORD)}`)).status, 200);
  });

  test('who guesses on before the answer has come loses the connection, so that each holds one', async (t) => {
    const server = await startGuarded(t);
    for (let i = 0; i < AT_ONCE; i += 1) await server.decide(wrongKey());
    const guessing = 'GET /stats?password=wrong HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(guessing.repeat(500));
    let received = '';
    for await (const data of socket.setEncoding('latin1')) received += data;
    assert.equal(received, '');
    // Other callers are still answered, a second late.
    assert.equal((await afterASecond(t, server, server.decide(wrongKey()))).status, 401);
  });

  test('a request without a credential has guessed nothing', async (t) => {
    const server = await startGuarded(t);
    for (let i = 0; i < 30; i += 1) {
      await server.decide();
      await server.get('/stats');
    }
    // The clock stands still, so a late answer would never come.
    assert.equal((await server.decide(wrongKey())).status, 401);
  });
});
