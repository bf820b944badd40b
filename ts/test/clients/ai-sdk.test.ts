import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createTypeSafeAi } from '@ai-sdk/typesafe-ai';
import { APICallError, experimental_decide as decide, type Experimental_DecisionModel as Model, RetryError } from 'ai';
import { expectTypeOf } from 'expect-type';
import { LiveServer } from '../real/live-server.ts';
import {
  brokenServer,
  busyServer,
  endedServer,
  failureOf,
  getOnly,
  KEY,
  LONG_STATE,
  strictServer,
  WRONG_KEY,
} from './refusing-servers.ts';

const STATE = 'I was charged twice and nobody answers.';
const QUESTIONS = {
  refund: { type: 'boolean', instructions: 'Does the customer want money back?' },
  team: { type: 'choice', instructions: 'Which team?', criteria: { billing: 'payments', tech: 'bugs, outages' } },
  anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'annoyed', 'furious'] },
} as const;

// The types do not match: the newest provider declares states of JSON only, and `ai` requires that it take files as
// well. At run time they fit.
const modelAt = (baseURL: string, apiKey = KEY) =>
  createTypeSafeAi({ apiKey, baseURL }).evaluationModel('jev-latest') as unknown as Model;
const v1 = (server: LiveServer) => new URL('/v1', server.url).href;

interface Asked {
  readonly state?: string;
  readonly maxRetries?: number;
}

const ask = (baseURL: string, { state = STATE, maxRetries = 0 }: Asked = {}, apiKey = KEY) =>
  decide({ model: modelAt(baseURL, apiKey), state, questions: QUESTIONS, maxRetries });

suite('ai with @ai-sdk/typesafe-ai', () => {
  for (const env of [{}, { SVC_API_KEY: KEY }]) {
    const key = 'SVC_API_KEY' in env ? 'on' : 'off';

    test(`gets typed answers, confidences and usage, with the key ${key}`, async (t) => {
      const server = await LiveServer.start(t, { env });
      const { answers, usage, warnings, providerMetadata: { typesafe } = {}, response } = await ask(v1(server));
      const questions = { ...QUESTIONS, refund: { ...QUESTIONS.refund, type: 'noul' } };
      // `ai` turns a text into a list of parts.
      const body = JSON.stringify({ state: [{ type: 'text', text: STATE }], questions });
      const same = JSON.parse(await server.answer(body, { Authorization: `Bearer ${KEY}` }));
      const { refund, team, anger } = same.answers;
      expectTypeOf(answers.team.choice).toEqualTypeOf<'billing' | 'tech'>();
      assert.deepEqual(answers, {
        refund: { type: 'boolean', probability: refund.noul },
        team: { type: 'choice', choice: team.choice, probabilities: team.probabilities },
        anger: { type: 'score', score: anger.score, probabilities: anger.probabilities },
      });
      assert.deepEqual(typesafe, {
        confidence: { team: team.confidence, anger: anger.confidence },
      });
      const tokens = same.usage.input_tokens;
      assert.deepEqual(usage, { inputTokens: tokens, outputTokens: 0, totalTokens: tokens });
      assert.deepEqual([response.modelId, warnings], ['svc', []]);
    });
  }

  test('throws an APICallError for each refusal, which holds what the server said', async (t) => {
    const server = await strictServer(t);
    const oneOption = { team: { type: 'choice', instructions: '', criteria: { billing: '' } } } as const;
    const bad = () => decide({ model: modelAt(v1(server)), state: '', questions: oneOption, maxRetries: 0 });
    const broken = await brokenServer(t);
    const ended = await endedServer(t);
    const unauthorized = '{"error":"missing or wrong API key"}';
    const cases = [
      [400, 'team: need at least two options', false, bad],
      [401, unauthorized, false, () => ask(v1(server), {}, WRONG_KEY)],
      [404, 'not found', false, () => ask(`${server.url.href}elsewhere`)],
      [405, 'method not allowed; use GET, HEAD', false, () => ask(getOnly(server))],
      [413, 'body larger than 900 bytes (max_body_bytes)', false, () => ask(v1(server), { state: LONG_STATE })],
      [500, 'the model run failed', true, () => ask(`${broken}/v1`)],
    ] as const;
    for (const [status, said, isRetryable, failing] of cases) {
      const error = await failureOf(failing);
      assert.ok(APICallError.isInstance(error), `${status}: ${error}`);
      assert.deepEqual([error.statusCode, error.responseBody, error.isRetryable], [status, said, isRetryable]);
    }
    const gone = await failureOf(() => ask(`${ended}v1`));
    assert.ok(APICallError.isInstance(gone) && gone.statusCode === undefined && gone.isRetryable);
  });

  test('comes again when the queue was full', async (t) => {
    const { server, free } = await busyServer(t);
    const refused = await failureOf(() => ask(v1(server)));
    assert.ok(APICallError.isInstance(refused) && refused.isRetryable);
    assert.equal(refused.responseBody, 'too many requests are waiting');
    assert.match(String(refused.responseHeaders?.['retry-after']), /^[1-9]\d*$/);
    const answered = ask(v1(server), { maxRetries: 2 });
    await server.process.logged(/"status":503[\s\S]*"status":503/);
    free();
    assert.deepEqual(Object.keys((await answered).answers), ['refund', 'team', 'anger']);
  });

  test('says how often it has tried when all was in vain', async (t) => {
    const broken = await brokenServer(t);
    const error = await failureOf(() => ask(`${broken}/v1`, { maxRetries: 1 }));
    assert.ok(RetryError.isInstance(error));
    assert.deepEqual([error.reason, error.errors.length], ['maxRetriesExceeded', 2]);
  });
});
