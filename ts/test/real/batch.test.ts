import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { LiveServer } from './live-server.ts';

const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  '10': { type: 'choice', instructions: 'Which team?', criteria: { '2': 'bugs', '1': 'invoices', sales: null } },
  anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'annoyed', 'furious'] },
  late: { type: 'noul', instructions: 'Is a parcel late?', criteria: { true: 'a delivery is late' } },
};

const STATES = [
  'I was charged twice and nobody answers.',
  { subject: 'Where is it?', days: 1.5e1 },
  '',
  'The parcel came a week late. '.repeat(80),
  null,
  'Thanks, all is well.',
];

const PATH = '/v1/systemone/batch';

const bodyOf = (states: readonly unknown[]) => JSON.stringify({ model: 'jev-latest', states, questions: QUESTIONS });

const post = (server: LiveServer, body: string | Buffer, headers = {}) =>
  server.send({ method: 'POST', path: PATH, body, headers });

suite('a batch', () => {
  test('has the answers of single requests to the last digit, in the order of the states', async (t) => {
    const server = await LiveServer.start(t);
    const { status, text, headers } = await post(server, bodyOf(STATES));
    assert.equal(status, 200, text);
    const batch = JSON.parse(text);
    assert.deepEqual(Object.keys(batch), ['model', 'results', 'usage']);
    assert.equal(batch.model, 'svc');
    let tokens = 0;
    for (const [index, state] of STATES.entries()) {
      const alone = await server.answer(JSON.stringify({ state, questions: QUESTIONS }));
      const own = batch.results[index];
      assert.deepEqual(own.answers, JSON.parse(alone).answers);
      assert.equal(own.usage.input_tokens, JSON.parse(alone).usage.input_tokens);
      assert.ok(text.includes(JSON.stringify(JSON.parse(alone).answers.anger)));
      tokens += own.usage.input_tokens;
    }
    assert.equal(batch.usage.input_tokens, tokens);
    const total = /total;dur=([\d.]+)$/.exec(String(headers['server-timing']))?.[1];
    assert.equal(Number(total), batch.usage.server_ms);
  });

  test('says the same in lines, and of all of it in the last', async (t) => {
    const server = await LiveServer.start(t);
    const { results, usage: all } = JSON.parse((await post(server, bodyOf(STATES))).text);
    const { text, headers } = await post(server, bodyOf(STATES), { Accept: 'application/x-ndjson' });
    assert.equal(headers['content-type'], 'application/x-ndjson; charset=utf-8');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(lines.length, STATES.length + 1);
    for (const [index, { answers }] of results.entries()) assert.deepEqual(lines[index].answers, answers);
    const { model, usage } = lines.at(-1);
    assert.equal(model, 'svc');
    assert.equal(usage.input_tokens, all.input_tokens);
    assert.ok(usage.input_tokens > 0 && usage.server_ms > 0);
  });

  test('lets a bad state fail alone', async (t) => {
    const server = await LiveServer.start(t, { env: { SVC_MAX_TOKENS: '200' } });
    const body = bodyOf(['fine', 'a word '.repeat(300), 'half \ud83d', 'half \ufffd', 'fine']);
    const { status, text } = await post(server, body);
    const { results } = JSON.parse(text);
    assert.equal(status, 200);
    const message = 'too many tokens, the limit is 200 (max_tokens)';
    assert.deepEqual(
      results.map((result: object) => 'answers' in result),
      [true, false, true, true, true],
    );
    assert.deepEqual(results[1], { error: { error_type: 'too_many_tokens', message } });
    assert.deepEqual(results[0].answers, results[4].answers);
    assert.deepEqual(results[2].answers, results[3].answers);
  });

  test('refuses all of it when the questions or the number of states are wrong', async (t) => {
    const server = await LiveServer.start(t, { env: { SVC_MAX_BATCH_STATES: '2' } });
    for (const [body, status, message] of [
      ['{"states":["a"],"questions":{"q":{"type":"x"}}}', 400, 'q: unknown type "x"'],
      ['{"questions":{}}', 400, 'states missing'],
      [bodyOf([1, 2, 3]), 413, '3 states, the limit is 2 (max_batch_states)'],
    ] as const) {
      const received = await post(server, body);
      assert.deepEqual([received.status, received.text], [status, message]);
    }
  });

  test('may be compressed, and of no state', async (t) => {
    const server = await LiveServer.start(t);
    const { text } = await post(server, gzipSync(bodyOf([])), { 'Content-Encoding': 'gzip' });
    assert.match(
      text,
      /^\{"model":"svc","results":\[\],"usage":\{"input_tokens":0,"output_tokens":0,"server_ms":[\d.]+\}\}$/,
    );
  });

  test('is finished by a server that stops, and ends with a caller who goes', async (t) => {
    // The server waits for longer than the batch takes on a busy machine.
    const server = await LiveServer.start(t, { settings: { drain_ms: 60_000 } });
    const states = Array.from({ length: 300 }, (_, index) => `Order ${index} is late.`);
    const left = await begun(server, bodyOf(states));
    left.on('error', () => {});
    left.destroy();
    await server.process.logged(/"code":"cancelled"/);
    const stays = await begun(server, bodyOf(states.slice(0, 60)));
    server.process.signal('SIGTERM');
    const text = (await buffer(stays)).toString();
    assert.equal(text.trimEnd().split('\n').length, 61);
    assert.equal((await server.process.finished).code, 0);
  });
});

/** Returns the answer of a batch in lines, once it has begun. */
async function begun(server: LiveServer, body: string): Promise<IncomingMessage> {
  const headers = { Accept: 'application/x-ndjson', 'Content-Length': Buffer.byteLength(body) };
  const { port } = server.url;
  const req = request({ host: '127.0.0.1', port, method: 'POST', path: PATH, headers }).end(body);
  const [res] = await once(req, 'response');
  await once(res, 'readable');
  return res;
}
