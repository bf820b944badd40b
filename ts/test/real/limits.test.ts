import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fixture } from '../addon/model-folders.ts';
import { manyQuestions, THREE_TYPES } from '../addon/requests.ts';
import { until } from '../until.ts';
import { assertRefused, largeRequest } from './large-request.ts';
import { LiveServer } from './live-server.ts';

suite('a limit', () => {
  const model = fixture('shared-state');

  test('max_questions is 1,024, and one more gets 413 that names it', async (t) => {
    const server = await LiveServer.start(t, { model });
    assert.equal((await server.decide(manyQuestions(1024))).status, 200);
    const refused = await server.decide(manyQuestions(1025));
    assertRefused(refused, 413, /^1025 questions, the limit is 1024 \(max_questions\)$/);
  });

  test('max_tokens lets as many pass, and one more gets 413 that names it', async (t) => {
    const { usage } = JSON.parse(await (await LiveServer.start(t, { model })).answer(THREE_TYPES));
    const tokens: number = usage.input_tokens;
    const [enough, few] = [
      await LiveServer.start(t, { model, env: { SVC_MAX_TOKENS: String(tokens) } }),
      await LiveServer.start(t, { model, settings: { max_tokens: tokens - 1 } }),
    ];
    assert.equal((await enough.decide(THREE_TYPES)).status, 200);
    const message = new RegExp(`tokens, the limit is ${tokens - 1} \\(max_tokens\\)$`);
    assertRefused(await few.decide(THREE_TYPES), 413, message);
  });

  test('max_body_bytes counts decompressed bytes', async (t) => {
    const bytes = Buffer.byteLength(THREE_TYPES);
    const server = await LiveServer.start(t, { model, settings: { max_body_bytes: bytes } });
    const gzip = { 'Content-Encoding': 'gzip' };
    assert.equal((await server.decide(THREE_TYPES)).status, 200);
    assert.equal((await server.decide(gzipSync(THREE_TYPES), { headers: gzip })).status, 200);
    const message = new RegExp(`^body larger than ${bytes} bytes \\(max_body_bytes\\)$`);
    assertRefused(await server.decide(`${THREE_TYPES} `), 413, message);
    assertRefused(await server.decide(gzipSync(`${THREE_TYPES} `), { headers: gzip }), 413, message);
  });

  test('truncate "error" gets 413 with the tokens that "count" only counts', async (t) => {
    const long = JSON.stringify({ state: 'late '.repeat(500), questions: { q: { type: 'noul' } } });
    const [count, error] = [
      await LiveServer.start(t, { model }),
      await LiveServer.start(t, { model, settings: { truncate: 'error' } }),
    ];
    const { truncated_tokens } = JSON.parse(await count.answer(long)).usage;
    assert.ok(truncated_tokens > 0);
    const message = new RegExp(`^${truncated_tokens} tokens are beyond the model's window and truncate is "error"$`);
    assertRefused(await error.decide(long), 413, message);
    assert.equal((await error.decide('{"state":"late","questions":{"q":{"type":"noul"}}}')).status, 200);
  });
});

suite('when the model is busy', () => {
  const options = { args: ['--threads', '1'], env: { SVC_ALLOW_NO_PASSWORD: '1' } };
  /** A request that takes many seconds on one thread; the callers that send it cancel it in the end. */
  const long = largeRequest(1000);

  /** Waits until one request is on the model and `waiting` others wait for it; the test's time-out bounds the wait. */
  async function isBusy(server: LiveServer, waiting: number): Promise<void> {
    await until(async () => {
      const { queue } = JSON.parse((await server.get('/stats')).text);
      return queue.running === 1 && queue.waiting === waiting;
    });
  }

  test('max_queue requests wait, and one more gets 503 with Retry-After', async (t) => {
    const server = await LiveServer.start(t, { ...options, settings: { max_queue: 2 } });
    const callers = [0, 1, 2].map(() => new AbortController());
    const held: Promise<unknown>[] = [];
    for (const [waiting, { signal }] of callers.entries()) {
      held.push(server.decide(long, { signal }).catch((error) => error.code));
      await isBusy(server, waiting);
    }
    assertRefused(await server.decide(THREE_TYPES), 503, /^too many requests are waiting$/);
    for (const caller of callers) caller.abort();
    assert.deepEqual(await Promise.all(held), ['ABORT_ERR', 'ABORT_ERR', 'ABORT_ERR']);
    // The server notices the hang-ups a moment later.
    await server.process.logged(/(?:"status":499(?:(?!"status":499)[\s\S])*){3}/);
    assert.equal((await server.decide(THREE_TYPES)).status, 200);
  });

  test('request_timeout_ms ends the wait with 503', async (t) => {
    const server = await LiveServer.start(t, { ...options, settings: { request_timeout_ms: 1500 } });
    const holder = new AbortController();
    const held = server.decide(long, { signal: holder.signal }).catch((error) => error.code);
    await isBusy(server, 0);
    const message = /^no turn on the model within 1500 ms \(request_timeout_ms\)$/;
    assertRefused(await server.decide(THREE_TYPES), 503, message);
    holder.abort();
    assert.equal(await held, 'ABORT_ERR');
    assert.equal((await server.decide(THREE_TYPES)).status, 200);
  });

  test('max_run_ms ends the run with 503', async (t) => {
    const server = await LiveServer.start(t, { ...options, settings: { max_run_ms: 2000 } });
    const message = /^not finished after 2000 ms on the model \(max_run_ms\)$/;
    assertRefused(await server.decide(long), 503, message);
    assert.equal((await server.decide(THREE_TYPES)).status, 200);
  });
});
