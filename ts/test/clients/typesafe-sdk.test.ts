import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import * as sdk from '@typesafe-ai/sdk';
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

const { choice, noul, score, TypeSafeClient } = sdk;

const STATE = { text: 'I was charged twice and nobody answers.', lines: [1, 2] };
const QUESTIONS = {
  refund: noul('Does the customer want money back?', { true: 'asks for it' }),
  team: choice('Which team?', { billing: 'payments, invoices', tech: { about: ['bugs', 'outages'] }, sales: null }),
  anger: score({ ask: 'How angry?' }, ['calm', 'annoyed', null]),
};

const clientOf = (baseURL: string, config: sdk.TypeSafeClientConfig = {}) =>
  new TypeSafeClient({ apiKey: KEY, baseURL, logLevel: 'off', ...config });

/** The setting under which the client does not retry. */
const once = { maxRetries: 0 };

suite('@typesafe-ai/sdk', () => {
  for (const env of [{}, { SVC_API_KEY: KEY }]) {
    const key = 'SVC_API_KEY' in env ? 'on' : 'off';

    test(`gets typed answers, usage, the request's id and the models, with the key ${key}`, async (t) => {
      const server = await LiveServer.start(t, { env });
      const client = clientOf(server.url.href);
      const { data, response, requestId } = await client
        .systemOne({ state: STATE, questions: QUESTIONS })
        .withResponse();
      const body = JSON.stringify({ state: STATE, questions: QUESTIONS });
      const same = JSON.parse(await server.answer(body, { Authorization: `Bearer ${KEY}` }));
      assert.deepEqual(data.answers, same.answers);
      const { team, anger } = data.answers;
      expectTypeOf(team.choice).toEqualTypeOf<'billing' | 'tech' | 'sales'>();
      assert.deepEqual(Object.keys(team.probabilities), ['billing', 'tech', 'sales']);
      assert.deepEqual(anger.legend, { 0: 'calm', 1: 'annoyed', 2: '2' });
      assert.equal(data.model, 'svc');
      assert.deepEqual([data.usage.input_tokens, data.usage.output_tokens], [same.usage.input_tokens, 0]);
      assert.equal(requestId, response.headers.get('x-request-id'));
      const [model] = await client.models.list();
      assert.deepEqual([model?.name, typeof model?.description], ['svc', 'string']);
      assert.match(String(model?.release_date), /^\d{4}-\d\d-\d\d$/);
    });
  }

  test('throws its own class for each refusal, with the message and the id', async (t) => {
    const server = await strictServer(t);
    const here = server.url.href;
    const broken = await brokenServer(t);
    const ended = await endedServer(t);
    const ask = (client: sdk.TypeSafeClient, state: string, options: sdk.RequestOptions = {}) =>
      failureOf(() => client.systemOne({ state, questions: QUESTIONS }, options));
    const oneOption = { team: choice('Which team?', { billing: null }) };
    const cases = [
      [
        sdk.BadRequestError,
        400,
        'team: need at least two options',
        failureOf(() => clientOf(here).systemOne({ state: '', questions: oneOption })),
      ],
      [sdk.AuthenticationError, 401, 'missing or wrong API key', ask(clientOf(here, { apiKey: WRONG_KEY }), '')],
      [
        sdk.AuthenticationError,
        401,
        'missing or wrong API key',
        failureOf(() => clientOf(here, { apiKey: WRONG_KEY }).models.list()),
      ],
      [
        sdk.PermissionDeniedError,
        403,
        'cross-site request refused; list its origin in cors_origins',
        ask(clientOf(here), '', { headers: { Origin: 'http://elsewhere.test' } }),
      ],
      [sdk.NotFoundError, 404, 'not found', ask(clientOf(`${here}elsewhere`), '')],
      [sdk.APIError, 405, 'method not allowed; use GET, HEAD', ask(clientOf(getOnly(server)), '')],
      [sdk.APIError, 413, 'body larger than 900 bytes (max_body_bytes)', ask(clientOf(here), LONG_STATE)],
      [sdk.InternalServerError, 500, 'the model run failed', ask(clientOf(broken, { retry: once }), '')],
    ] as const;
    for (const [type, status, message, failing] of cases) {
      const error = await failing;
      assert.ok(error instanceof type && error instanceof sdk.APIError, `${status}: ${error}`);
      assert.equal(error.status, status);
      assert.equal(error.message, `${status} ${message}`);
      assert.match(String(error.requestId), /^[\da-f-]{36}$/);
    }
    const gone = await ask(clientOf(ended, { retry: once }), '');
    assert.ok(gone instanceof sdk.APIConnectionError);
  });

  test('is told by a full queue when to come again, and is answered then', async (t) => {
    const { server, free } = await busyServer(t);
    const refused = await failureOf(() =>
      clientOf(server.url.href, { retry: once }).systemOne({ state: '', questions: QUESTIONS }),
    );
    assert.ok(refused instanceof sdk.InternalServerError);
    assert.deepEqual([refused.status, refused.message], [503, '503 too many requests are waiting']);
    const seconds = Number(refused.headers.get('retry-after'));
    const said: string[] = [];
    const note = (line: string) => {
      said.push(line);
      // The client has been refused once; this makes room for its second try.
      if (line.includes('retrying in')) free();
    };
    const logger = { debug: note, info: note, warn: note, error: note };
    const client = clientOf(server.url.href, { logLevel: 'info', logger });
    const { answers } = await client.systemOne({ state: STATE, questions: QUESTIONS });
    assert.deepEqual(Object.keys(answers), ['refund', 'team', 'anger']);
    const waits = said.flatMap((line) => /retrying in (\d+)ms .* after 503/.exec(line)?.[1] ?? []);
    assert.deepEqual(waits.slice(0, 1), [String(seconds * 1000)]);
  });

  test('waits no longer when its caller has gone', async (t) => {
    const { server } = await busyServer(t);
    const caller = new AbortController();
    const note = (line: string) => {
      if (line.includes('retrying in')) caller.abort();
    };
    const logger = { debug: note, info: note, warn: note, error: note };
    const client = clientOf(server.url.href, { logLevel: 'info', logger });
    const { signal } = caller;
    const error = await failureOf(() => client.systemOne({ state: STATE, questions: QUESTIONS }, { signal }));
    assert.ok(error instanceof sdk.APIUserAbortError);
  });
});
