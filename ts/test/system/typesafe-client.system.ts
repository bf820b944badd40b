import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  brokenServer,
  busyServer,
  endedServer,
  getOnly,
  KEY,
  LONG_STATE,
  strictServer,
  WRONG_KEY,
} from '../clients/refusing-servers.ts';
import { LiveServer } from '../real/live-server.ts';
import { runScript } from './python.ts';

const STATE = { text: 'I was charged twice and nobody answers.', lines: [1, 2] };
const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?', criteria: { true: 'asks for it' } },
  team: { type: 'choice', instructions: 'Which team?', criteria: { billing: 'payments', tech: { about: ['bugs'] } } },
  anger: { type: 'score', instructions: { ask: 'How angry?' }, criteria: ['calm', 'annoyed', 'furious'] },
};
const ONE_OPTION = { team: { type: 'choice', criteria: { billing: null } } };

/** A call for `typesafe_client.py` to make. */
interface Call {
  readonly base_url: string;
  readonly api_key?: string;
  readonly state?: unknown;
  readonly questions?: object;
  readonly async?: boolean;
  readonly headers?: object;
  readonly max_retries?: number;
}

/** Returns the outcomes of the client's calls. */
async function calls(list: readonly Call[]) {
  const input = JSON.stringify(list.map((call) => ({ api_key: KEY, ...call })));
  const { stdout, stderr } = await runScript('typesafe_client.py', [], { input });
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines.length, list.length, stderr);
  return lines.map((line) => JSON.parse(line));
}

suite('typesafe-sdk', () => {
  for (const env of [{}, { SVC_API_KEY: KEY }]) {
    const key = 'SVC_API_KEY' in env ? 'on' : 'off';

    test(`gets typed answers and the models, waiting or not, with the key ${key}`, async (t) => {
      const server = await LiveServer.start(t, { env });
      const base_url = server.url.href;
      const decision = { base_url, state: STATE, questions: QUESTIONS };
      const [one, other, models, otherModels] = await calls([
        decision,
        { ...decision, async: true },
        { base_url },
        { base_url, async: true },
      ]);
      const { refund, team, anger } = JSON.parse(
        await server.answer(JSON.stringify({ state: STATE, questions: QUESTIONS }), { Authorization: `Bearer ${KEY}` }),
      ).answers;
      for (const result of [one, other]) {
        assert.deepEqual(result.answers, {
          refund: { type: 'noul', noul: refund.noul },
          team: { type: 'choice', choice: team.choice, confidence: team.confidence, probabilities: team.probabilities },
          anger: {
            type: 'score',
            score: anger.score,
            confidence: anger.confidence,
            legend: anger.legend,
            probabilities: anger.probabilities,
          },
        });
        assert.deepEqual(result.kinds, {
          nouls: { refund: 'NoulAnswer' },
          choices: { team: 'ChoiceAnswer' },
          scores: { anger: 'ScoreAnswer' },
        });
        assert.deepEqual([result.type, result.model, result.usage.output_tokens], ['SystemOneResponse', 'svc', 0]);
        assert.match(result.request_id, /^[\da-f-]{36}$/);
      }
      for (const {
        type,
        models: [model],
      } of [models, otherModels]) {
        assert.deepEqual([type, model.name], ['ListModelsResponse', 'svc']);
        assert.match(model.release_date, /^\d{4}-\d\d-\d\d$/);
      }
    });
  }

  test('throws its own class for each refusal, with the message and the id', async (t) => {
    const server = await strictServer(t);
    const broken = await brokenServer(t);
    const here = { base_url: server.url.href, state: '', questions: QUESTIONS };
    const cases: [Call, string, number, string][] = [
      [{ ...here, questions: ONE_OPTION }, 'TypeSafeBadRequestError', 400, 'team: need at least two options'],
      [{ ...here, api_key: WRONG_KEY }, 'TypeSafeAuthenticationError', 401, 'missing or wrong API key'],
      [
        { base_url: here.base_url, api_key: WRONG_KEY, async: true },
        'TypeSafeAuthenticationError',
        401,
        'missing or wrong API key',
      ],
      [{ ...here, headers: { Origin: 'http://elsewhere.test' } }, 'TypeSafePermissionDeniedError', 403, ''],
      [{ ...here, base_url: `${here.base_url}elsewhere` }, 'TypeSafeNotFoundError', 404, 'not found'],
      [{ ...here, base_url: getOnly(server) }, 'TypeSafeAPIError', 405, 'method not allowed; use GET, HEAD'],
      [{ ...here, state: LONG_STATE }, 'TypeSafeAPIError', 413, '(max_body_bytes)'],
      [{ ...here, base_url: broken, max_retries: 0 }, 'TypeSafeInternalServerError', 500, 'the model run failed'],
    ];
    const said = await calls(cases.map(([call]) => call));
    for (const [index, [, type, status, message]] of cases.entries()) {
      const { error, request_id, ...rest } = said[index];
      assert.deepEqual([error[0], rest.status], [type, status], rest.message);
      assert.ok(rest.message.includes(message), rest.message);
      assert.match(request_id, /^[\da-f-]{36}$/);
    }
    const [gone] = await calls([{ ...here, base_url: await endedServer(t), max_retries: 0 }]);
    assert.equal(gone.error[0], 'TypeSafeAPIConnectionError');
  });

  test('is told by a full queue when to come again, and is answered then', async (t) => {
    const { server, free } = await busyServer(t);
    const call = { base_url: server.url.href, state: STATE, questions: QUESTIONS };
    const [refused] = await calls([{ ...call, max_retries: 0 }]);
    assert.deepEqual([refused.error[0], refused.status], ['TypeSafeInternalServerError', 503]);
    assert.match(refused.message, /: 503 too many requests are waiting /);
    assert.match(refused.retry_after, /^[1-9]\d*$/);
    const answered = calls([call]);
    await server.process.logged(/"status":503[\s\S]*"status":503/);
    free();
    const [{ answers }] = await answered;
    assert.deepEqual(Object.keys(answers), ['refund', 'team', 'anger']);
  });
});
