import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fixture } from '../addon/model-folders.ts';
import { manyQuestions, THREE_TYPES } from '../addon/requests.ts';
import { until } from '../until.ts';
import { LiveServer, type Received } from './live-server.ts';

const choice = (options: number) => {
  const names = Array.from({ length: options }, (_, index) => [`option ${index}`, `number ${index} of the list`]);
  return { type: 'choice', instructions: 'Which one?', criteria: Object.fromEntries(names) };
};
const score = (levels: number) => ({
  type: 'score',
  instructions: 'How much?',
  criteria: Array.from({ length: levels }, (_, index) => `grade ${index}`),
});

/** Returns a request with `count` questions of at least 20 tokens each about a state of 2,000 tokens. */
function largeRequest(count: number): string {
  const ask = (index: number) => [
    `q${index}`,
    {
      type: 'noul',
      instructions: `Does the customer of parcel ${index} ask us to send the money back before the end of this week?`,
    },
  ];
  const state = 'The order was late and the box was open. '.repeat(200);
  return JSON.stringify({
    state,
    questions: Object.fromEntries(Array.from({ length: count }, (_, index) => ask(index))),
  });
}

function assertRefused({ status, headers, text }: Received, expected: number, message: RegExp): void {
  assert.equal(status, expected, text);
  assert.match(text, message);
  if (expected === 503) assert.match(String(headers['retry-after']), /^[1-9]\d*$/);
}

suite('what a request may hold, on the embedded model', () => {
  test('255 options, 10 levels and 400 questions at once, each answered as alone', async (t) => {
    const server = await LiveServer.start(t);
    const state = 'The parcel arrived crushed.';
    const { questions } = JSON.parse(manyQuestions(398, state));
    const all: Record<string, unknown> = { options: choice(255), levels: score(10), ...questions };
    const { answers } = JSON.parse(await server.answer(JSON.stringify({ state, questions: all })));
    assert.deepEqual(Object.keys(answers), Object.keys(all));
    assert.equal(Object.keys(answers.options.probabilities).length, 255);
    assert.equal(Object.keys(answers.levels.probabilities).length, 10);
    for (const id of ['options', 'levels', 'q0', 'q250', 'q397']) {
      const alone = JSON.parse(await server.answer(JSON.stringify({ state, questions: { [id]: all[id] } })));
      assert.deepEqual(alone.answers[id], answers[id], id);
    }
  });

  test('400 questions of 20 tokens about a state of 2,000 tokens end within max_run_ms', async (t) => {
    const server = await LiveServer.start(t);
    const { usage } = JSON.parse(await server.answer(largeRequest(400)));
    assert.ok(usage.input_tokens > 400 * 20 + 2000, `${usage.input_tokens} tokens`);
  });

  test('what cannot be run within max_run_ms is refused at once when it was measured', async (t) => {
    const server = await LiveServer.start(t, { env: { SVC_MAX_RUN_MS: '2000', SVC_THREADS: '1' } });
    // A first request that runs out of time is told to retry. From the time that it and another one took, the server
    // then knows enough to refuse the rest for good.
    const answers: Received[] = [];
    while (answers.at(-1)?.status !== 413 && answers.length < 8) answers.push(await server.decide(largeRequest(1000)));
    assertRefused(answers[0] as Received, 503, /^not finished after 2000 ms on the model \(max_run_ms\)$/);
    const refused = /^\d+ tokens take at least \d+ ms on this machine, the limit is 2000 ms \(max_run_ms\)$/;
    assertRefused(answers.at(-1) as Received, 413, refused);
    const small = { state: 'Late again.', questions: { q: { type: 'noul', instructions: 'Is it late?' } } };
    assert.equal((await server.decide(JSON.stringify(small))).status, 200);
  });

  test('a state of 100 kB, and what is beyond the window is counted', async (t) => {
    const server = await LiveServer.start(t);
    const state = 'The order was late and the box was open. '.repeat(2500);
    assert.ok(state.length > 100_000);
    const questions = { q: { type: 'noul', instructions: 'Was it late?' } };
    const { usage } = JSON.parse(await server.answer(JSON.stringify({ state, questions })));
    // Each sentence has ten tokens. The model reads 16,384 tokens, in chunks of 254 with two more around each.
    assert.equal(usage.truncated_tokens, 25_000 - 16_384);
    assert.ok(usage.input_tokens > 16_384 + 2 * 64 && usage.input_tokens < 16_384 + 200);
    const short = JSON.parse(await server.answer(JSON.stringify({ state: state.slice(0, 40_000), questions }))).usage;
    assert.equal('truncated_tokens' in short, false);
  });
});

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
