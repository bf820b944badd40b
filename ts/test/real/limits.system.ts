import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { manyQuestions } from '../addon/requests.ts';
import { assertRefused, largeRequest } from './large-request.ts';
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
