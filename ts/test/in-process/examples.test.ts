import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { generateText, stepCountIs, type ToolSet } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { memberTexts } from '../../src/file-run/json-text.ts';
import { createEngine } from '../../src/in-process/index.ts';
import { STATE_HEADER, stateDigest } from '../../src/network/state-header.ts';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { listen } from '../gate/gate-under-test.ts';

const EXAMPLES = join(REPOSITORY, 'examples');
const MAIL = 'I was charged twice and nobody answers. I want my money back!';

/** Starts an example on a free port, and returns its address. */
async function start(t: TestContext, name: string): Promise<string> {
  const env = { ...process.env, PORT: '0' };
  const child = spawn(process.execPath, [join(EXAMPLES, name)], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [port] = await once(child.stdout.setEncoding('utf8'), 'data');
  return `http://127.0.0.1:${Number(port)}`;
}

async function post(url: string, body: unknown): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return response.json();
}

suite('the example for', () => {
  test('Express names a team', async (t) => {
    const answer = await post(`${await start(t, 'express.js')}/tickets`, { mail: MAIL });
    assert.match(JSON.stringify(answer), /^\{"team":"(billing|tech|sales|somebody)"\}$/);
  });

  test('Fastify accepts a message or does not', async (t) => {
    const answer = await post(`${await start(t, 'fastify.js')}/messages`, { mail: MAIL });
    assert.match(JSON.stringify(answer), /^\{"accepted":(true|false)\}$/);
  });

  test('Hono tells what is urgent', async (t) => {
    const answer = await post(`${await start(t, 'hono.js')}/calls`, MAIL);
    assert.match(JSON.stringify(answer), /^\{"urgent":(true|false)\}$/);
  });

  test('three servers says which state each question is about', async (t) => {
    const asked: IncomingMessage[] = [];
    const bodies: string[] = [];
    const answer = { type: 'noul', noul: 0.9, probabilities: {}, confidence: 1, answer_confidence: 1 };
    const server = createServer(async (req, res) => {
      asked.push(req);
      bodies.push((await buffer(req)).toString());
      const headers = { 'content-type': 'application/json', 'x-typesafe-request-id': '1' };
      const answers = { refund: answer, angry: answer };
      res.writeHead(200, headers).end(JSON.stringify({ model: 'svc', answers, usage: {} }));
    });
    const env = { SVC_URL: `http://127.0.0.1:${await listen(t, server)}` };
    const { stdout, stderr } = await runCommand(process.execPath, { args: [join(EXAMPLES, 'three-servers.js')], env });
    assert.equal(stdout, '0.9 0.9\n', stderr);
    const state = memberTexts(bodies[0] ?? '')?.get('state') ?? '';
    const digest = stateDigest(state);
    assert.deepEqual(
      asked.map(({ headers }) => headers[STATE_HEADER]),
      [digest, digest],
    );
  });

  test('the AI SDK is a tool that a language model calls', async () => {
    const { wantsRefund }: ToolSet = await import(pathToFileURL(join(EXAMPLES, 'ai-sdk.js')).href);
    assert.ok(wantsRefund);
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    };
    const call = {
      type: 'tool-call',
      toolCallId: '1',
      toolName: 'wantsRefund',
      input: JSON.stringify({ mail: MAIL }),
    } as const;
    const model = new MockLanguageModelV3({
      doGenerate: async () => ({
        content: [call],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      }),
    });
    const { toolResults } = await generateText({
      model,
      tools: { wantsRefund },
      prompt: MAIL,
      stopWhen: stepCountIs(1),
    });
    const engine = await createEngine();
    const { answers } = await engine.decide({
      state: MAIL,
      questions: { refund: { type: 'noul', instructions: 'Does the customer want money back?' } },
    });
    await engine.close();
    assert.deepEqual(
      toolResults.map(({ output }) => output),
      [answers.refund.noul],
    );
  });
});
