import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import * as errors from '@openrouter/sdk/models/errors';
import { LiveServer } from '../real/live-server.ts';
import {
  brokenServer,
  busyServer,
  endedServer,
  failureOf,
  KEY,
  LONG_STATE,
  strictServer,
  WRONG_KEY,
} from './refusing-servers.ts';

type Request = Parameters<OpenRouter['systemOne']['create']>[0]['decisionsRequest'];

const REQUEST = {
  model: 'jev-latest',
  state: 'I was charged twice and nobody answers.',
  questions: {
    refund: { type: 'noul', instructions: 'Does the customer want money back?' },
    team: {
      type: 'choice',
      instructions: 'Which team?',
      criteria: { billing: 'payments', tech: ['bugs'], sales: null },
    },
    anger: { type: 'score', instructions: { ask: 'How angry?' }, criteria: ['calm', 'annoyed', { like: 'furious' }] },
  },
} satisfies Request;

const v1 = (server: LiveServer) => new URL('/v1', server.url).href;
const ask = (serverURL: string, request: Partial<Request> = {}, apiKey = KEY) =>
  new OpenRouter({ apiKey, serverURL }).systemOne.create(
    { decisionsRequest: { ...REQUEST, ...request } },
    // By default the client would retry for an hour.
    { retries: { strategy: 'none' } },
  );

suite('@openrouter/sdk', () => {
  for (const env of [{}, { SVC_API_KEY: KEY }]) {
    const key = 'SVC_API_KEY' in env ? 'on' : 'off';

    test(`gets typed answers and usage from systemOne, with the key ${key}`, async (t) => {
      const server = await LiveServer.start(t, { env });
      const { answers, model, usage } = await ask(v1(server), { user: 'u', sessionId: 's', trace: { spanName: 'n' } });
      const same = JSON.parse(await server.answer(JSON.stringify(REQUEST), { Authorization: `Bearer ${KEY}` }));
      const { refund, team, anger } = same.answers;
      assert.deepEqual(answers, {
        refund: { type: 'noul', noul: refund.noul },
        team: {
          type: 'choice',
          choice: team.choice,
          confidence: team.confidence,
          probabilities: team.probabilities,
        },
        anger: {
          type: 'score',
          score: anger.score,
          confidence: anger.confidence,
          legend: { 0: 'calm', 1: 'annoyed', 2: { like: 'furious' } },
          probabilities: anger.probabilities,
        },
      });
      assert.equal(model, 'svc');
      assert.deepEqual(usage, { inputTokens: same.usage.input_tokens, outputTokens: 0 });
    });
  }

  test('throws its own class for each refusal, with the status and the message', async (t) => {
    const server = await strictServer(t);
    const broken = await brokenServer(t);
    const ended = await endedServer(t);
    const oneOption: Request['questions'] = { team: { type: 'choice', instructions: '', criteria: { billing: null } } };
    const cases = [
      [
        errors.BadRequestResponseError,
        400,
        'team: need at least two options',
        () => ask(v1(server), { questions: oneOption }),
      ],
      [errors.NotFoundResponseError, 404, 'not found', () => ask(`${server.url.href}elsewhere`)],
      [
        errors.PayloadTooLargeResponseError,
        413,
        'body larger than 900 bytes (max_body_bytes)',
        () => ask(v1(server), { state: LONG_STATE }),
      ],
      [errors.InternalServerResponseError, 500, 'the model run failed', () => ask(`${broken}/v1`)],
    ] as const;
    for (const [type, status, message, failing] of cases) {
      const error = await failureOf(failing);
      assert.ok(error instanceof type, `${status}: ${error}`);
      assert.deepEqual([error.statusCode, error.message, error.error.code], [status, message, status]);
    }
    const gone = await failureOf(() => ask(`${ended}v1`));
    assert.ok(gone instanceof errors.ConnectionError);
  });

  test('shows a wrong key by its status: the body is no object that it knows', async (t) => {
    const server = await strictServer(t);
    const error = await failureOf(() => ask(v1(server), {}, WRONG_KEY));
    assert.ok(error instanceof errors.ResponseValidationError);
    assert.deepEqual([error.statusCode, error.body], [401, '{"error":"missing or wrong API key"}']);
  });

  test('comes again when the queue was full', async (t) => {
    const { server, free } = await busyServer(t);
    const refused = await failureOf(() => ask(v1(server)));
    assert.ok(refused instanceof errors.ServiceUnavailableResponseError);
    assert.equal(refused.message, 'too many requests are waiting');
    assert.match(String(refused.headers.get('retry-after')), /^[1-9]\d*$/);
    const client = new OpenRouter({ apiKey: KEY, serverURL: v1(server) });
    const answered = client.systemOne.create({ decisionsRequest: REQUEST });
    await server.process.logged(/"status":503[\s\S]*"status":503/);
    free();
    assert.deepEqual(Object.keys((await answered).answers), ['refund', 'team', 'anger']);
  });
});
