import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import OpenAI from 'openai';
import { fixture } from '../addon/model-folders.ts';
import { slowModel } from '../model/live-model.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { brokenServer, busyServer, endedServer, failureOf, KEY } from './refusing-servers.ts';

const TEXT = 'I was charged twice and nobody answers.';

/** A tiny model, for what does not depend on the answers. */
const TINY = { model: fixture('marker') };

type Params = OpenAI.DecisionCreateParams;

const QUESTIONS = [
  { type: 'predicate', name: 'refund', instructions: 'Does the customer want money back?' },
  {
    type: 'choice',
    name: 'team',
    instructions: 'Which team should handle this?',
    choices: [
      { value: 'billing', description: 'payments, invoices' },
      { value: 'tech', description: 'bugs, outages' },
      { value: 'sales' },
    ],
  },
  {
    type: 'score',
    name: 'anger',
    instructions: 'How angry is the customer?',
    levels: [{ label: 'calm' }, { label: 'annoyed', description: 'says so' }, { label: 'furious' }],
  },
] satisfies Params['questions'];

/** The same questions in the form of `POST /v1/systemone`. */
const SYSTEMONE = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  team: {
    type: 'choice',
    instructions: 'Which team should handle this?',
    criteria: { billing: 'payments, invoices', tech: 'bugs, outages', sales: null },
  },
  anger: {
    type: 'score',
    instructions: 'How angry is the customer?',
    criteria: ['calm', 'annoyed: says so', 'furious'],
  },
};

const clientOf = (server: LiveServer, apiKey: string) =>
  new OpenAI({ apiKey, baseURL: new URL('/v1', server.url).href, maxRetries: 0 });

const ask = (client: OpenAI, params: Partial<Params> = {}) =>
  client.decisions.create({ model: 'gpt-6-luna', input: TEXT, questions: QUESTIONS, ...params });

suite('the public OpenAI client', () => {
  for (const env of [{}, { SVC_API_KEY: KEY }]) {
    const key = 'SVC_API_KEY' in env ? 'on' : 'off';

    test(`knows the one model, with the key ${key}`, async (t) => {
      const client = clientOf(await LiveServer.start(t, { ...TINY, env }), KEY);
      const model = await client.models.retrieve('svc');
      assert.deepEqual([model.id, model.object], ['svc', 'model']);
      assert.ok(model.created > 1_700_000_000, `${model.created}`);
      const { data: models } = await client.models.list();
      assert.deepEqual(models, [model]);
      await assert.rejects(client.models.retrieve('gpt-6-luna'), OpenAI.NotFoundError);
    });

    test(`gets the answers of /v1/systemone to the last digit, with the key ${key}`, async (t) => {
      const server = await LiveServer.start(t, { env });
      const decision = await ask(clientOf(server, KEY));
      const body = JSON.stringify({ state: TEXT, questions: SYSTEMONE });
      const same = JSON.parse(await server.answer(body, { Authorization: `Bearer ${KEY}` }));
      const { refund, team, anger } = same.answers;
      const { probabilities } = anger;
      assert.deepEqual(decision.answers, [
        { type: 'predicate', name: 'refund', probability: refund.noul },
        {
          type: 'choice',
          name: 'team',
          choice: team.choice,
          confidence: team.confidence,
          probabilities: ['billing', 'tech', 'sales'].map((value) => ({
            value,
            probability: team.probabilities[value],
          })),
        },
        {
          type: 'score',
          name: 'anger',
          score: anger.score,
          confidence: anger.confidence,
          probabilities: ['calm', 'annoyed', 'furious'].map((label, value) => ({
            value,
            label,
            probability: probabilities[value],
          })),
        },
      ]);
      const { input_tokens } = same.usage;
      assert.equal(decision.model, 'svc');
      assert.deepEqual(decision.usage, {
        input_tokens,
        input_tokens_details: { cache_write_tokens: 0, cached_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input_tokens,
      });
    });
  }

  test('tells a boolean from a string, and keeps a question without a name', async (t) => {
    const server = await LiveServer.start(t, TINY);
    const choices = [{ value: true }, { value: 'true', description: 'a word' }, { value: false }];
    const questions: Params['questions'] = [{ type: 'choice', instructions: 'Which?', choices }];
    const { answers } = await ask(clientOf(server, KEY), { questions });
    const answer = answers[0];
    assert.ok(answer?.type === 'choice');
    assert.equal(answer.name, null);
    assert.deepEqual(
      answer.probabilities.map(({ value }) => value),
      [true, 'true', false],
    );
    assert.ok(answer.probabilities.some(({ value }) => value === answer.choice));
  });

  test("takes a user's message for the state, and any other input for a transcript", async (t) => {
    const server = await LiveServer.start(t, TINY);
    const client = clientOf(server, KEY);
    const answersTo = async (input: Params['input']) => (await ask(client, { input })).answers;
    const plain = await answersTo(TEXT);
    assert.deepEqual(await answersTo([{ role: 'user', content: TEXT }]), plain);
    assert.deepEqual(await answersTo([{ role: 'user', content: [{ type: 'input_text', text: TEXT }] }]), plain);
    const items: Params['input'] = [
      { role: 'user', content: TEXT },
      { type: 'function_call', call_id: '1', name: 'find_order', arguments: '{"id":7}' },
      { type: 'function_call_output', call_id: '1', output: 'paid twice' },
    ];
    const transcript = `user: ${TEXT}\ncall of find_order: {"id":7}\nresult of find_order: paid twice`;
    assert.deepEqual(await answersTo(items), await answersTo(transcript));
  });

  test('throws its own class for each error, with the code and the place', async (t) => {
    const server = await LiveServer.start(t, {
      ...TINY,
      env: { SVC_API_KEY: KEY, SVC_MAX_QUESTIONS: '3' },
    });
    const failure = (client: OpenAI, params: Partial<Params>) => failureOf(() => ask(client, params));
    const client = clientOf(server, KEY);
    const oneOption = await failure(client, { questions: [{ type: 'choice', instructions: '', choices: [] }] });
    assert.ok(oneOption instanceof OpenAI.BadRequestError);
    assert.deepEqual(
      [oneOption.code, oneOption.param, oneOption.type, oneOption.message],
      ['too_few_options', 'questions[0]', 'invalid_request_error', '400 questions[0]: need at least two options'],
    );
    assert.match(String(oneOption.requestID), /^[\da-f-]{36}$/);
    const image = await failure(client, {
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,' }] }],
    });
    assert.ok(image instanceof OpenAI.BadRequestError);
    assert.deepEqual([image.code, image.param], ['bad_field', 'input[0].content[0]']);
    const many = await failure(client, { questions: [...QUESTIONS, ...QUESTIONS] });
    assert.ok(many instanceof OpenAI.APIError);
    assert.deepEqual([many.status, many.code], [413, 'too_many_questions']);
    // The body of a 401 has the form of this server's own API: a text where the client looks for an object. The client
    // finds the class of the error from the status.
    const stranger = await failure(clientOf(server, 'a-wrong-key-of-the-test'), {});
    assert.ok(stranger instanceof OpenAI.AuthenticationError);
    assert.match(stranger.message, /missing or wrong API key/);
  });

  test('throws its own class where a path, the model or the whole server fails', async (t) => {
    const server = await LiveServer.start(t, TINY);
    const at = (baseURL: string) => () => ask(new OpenAI({ apiKey: KEY, baseURL, maxRetries: 0 }));
    const broken = await brokenServer(t);
    const ended = await endedServer(t);
    const elsewhere = await failureOf(at(new URL('/elsewhere', server.url).href));
    assert.ok(elsewhere instanceof OpenAI.NotFoundError);
    const failed = await failureOf(at(`${broken}/v1`));
    assert.ok(failed instanceof OpenAI.InternalServerError);
    assert.deepEqual([failed.status, failed.message], [500, '500 the model run failed']);
    assert.ok((await failureOf(at(`${ended}v1`))) instanceof OpenAI.APIConnectionError);
  });

  test('is told by a full queue when to come again, and is answered then', async (t) => {
    const { server, free } = await busyServer(t);
    const refused = await failureOf(() => ask(clientOf(server, KEY)));
    assert.ok(refused instanceof OpenAI.InternalServerError);
    assert.deepEqual([refused.status, refused.message], [503, '503 too many requests are waiting']);
    assert.match(String(refused.headers?.get('retry-after')), /^[1-9]\d*$/);
    const answered = ask(new OpenAI({ apiKey: KEY, baseURL: new URL('/v1', server.url).href }));
    await server.process.logged(/"status":503[\s\S]*"status":503/);
    free();
    assert.equal((await answered).answers.length, 3);
  });

  test('comes again when the server is not ready yet', async (t) => {
    const { url, finish } = await slowModel(t, fixture('shared-state'));
    const env = { SVC_DATA: temporaryFolder(t) };
    const server = await LiveServer.start(t, { model: url, env, isLoading: true });
    const client = new OpenAI({ apiKey: KEY, baseURL: new URL('/v1', server.url).href, maxRetries: 20 });
    const answered = ask(client);
    await Promise.race([server.process.logged(/"status":503/), answered]);
    finish();
    assert.equal((await answered).answers.length, 3);
    await server.process.logged(/"status":503[\s\S]*"status":200/);
  });
});
