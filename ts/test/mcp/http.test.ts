import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { pino } from 'pino';
import { createMcpApp, UNCOUNTED } from '../../src/mcp/app.ts';
import { type Decide, NoDecision } from '../../src/mcp/decider.ts';
import { createHttpServer } from '../../src/server/http-server.ts';
import { Lifecycle } from '../../src/server/lifecycle.ts';
import { Secret } from '../../src/settings/secret.ts';

const KEY = 'the-key-of-the-tools';
const ANSWER = JSON.stringify({
  model: 'svc',
  answers: { q: { type: 'noul', noul: 0.9, probabilities: { false: 0.1, true: 0.9 }, confidence: 0.8 } },
  usage: { input_tokens: 3 },
});
const CHECK = { name: 'check', arguments: { state: 's', statement: 'S?' } };
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};

interface Options {
  readonly keys?: readonly string[];
  readonly corsOrigins?: readonly string[];
  readonly decide?: Decide;
  readonly maxBodyBytes?: number;
}

/** Starts the tools over HTTP on a free port, and returns their address. */
async function start(t: TestContext, options: Options = {}): Promise<URL> {
  const { keys = [], corsOrigins = [], decide = async () => ANSWER, maxBodyBytes = 10_000 } = options;
  const limits = { maxBodyBytes, maxQueueBytes: 100_000, drainDelayMs: 0, drainMs: 100, requestTimeoutMs: 60_000 };
  const config = { listen: { host: '127.0.0.1', port: 0 }, allowedHosts: [], corsOrigins, ...limits };
  const parts = { log: pino({ level: 'silent' }), lifecycle: new Lifecycle() };
  const app = createMcpApp({ ...parts, config, decide, keys: keys.map((key) => new Secret(key, 'test')) });
  const slot = { model: undefined };
  const server = createHttpServer({ ...parts, app, config, slot, metrics: UNCOUNTED, maxConnections: 100 });
  const { port } = await server.listen(config.listen);
  t.after(() => server.drain());
  return new URL(`http://127.0.0.1:${port}/mcp`);
}

async function connect(t: TestContext, url: URL, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }) as Transport);
  t.after(() => client.close());
  return client;
}

interface Posted {
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly method?: string;
  readonly signal?: AbortSignal;
}

const post = (url: URL, { headers, body = JSON.stringify(INITIALIZE), method = 'POST', signal }: Posted = {}) =>
  fetch(url, {
    method,
    ...(signal && { signal }),
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
    ...(method === 'POST' && { body }),
  });

suite('the tools over HTTP', () => {
  test("answer the official SDK's client", async (t) => {
    const requests: string[] = [];
    const decide: Decide = async (request) => {
      requests.push(request);
      return ANSWER;
    };
    const url = await start(t, { decide });
    const client = await connect(t, url);
    assert.equal(client.getServerVersion()?.name, 'svc');
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['decide', 'classify', 'score', 'check'],
    );
    for (const { annotations } of tools) assert.equal(annotations?.readOnlyHint, true);
    const result = await client.callTool(CHECK);
    const expected = { holds: true, probability: 0.9, confidence: 0.8 };
    assert.deepEqual(result.structuredContent, expected);
    assert.deepEqual(result.content, [{ type: 'text', text: JSON.stringify(expected) }]);
    assert.deepEqual(requests, ['{"state":"s","questions":{"q":{"type":"noul","instructions":"S?"}}}']);
  });

  test('give a fault as the result of the call', async (t) => {
    const decide: Decide = async () => {
      throw new NoDecision('q: need at least two options');
    };
    const client = await connect(t, await start(t, { decide }));
    const { isError, content } = await client.callTool(CHECK);
    assert.deepEqual([isError, content], [true, [{ type: 'text', text: 'q: need at least two options' }]]);
    const wrong = await client.callTool({ name: 'check', arguments: { state: 's' } });
    assert.equal(wrong.isError, true);
    await assert.rejects(client.callTool({ name: 'decided', arguments: {} }), /there is no tool decided/);
  });

  test('stop a decision whose caller has gone', async (t) => {
    let gone = () => {};
    const left = new Promise<void>((resolve) => {
      gone = resolve;
    });
    const decide: Decide = (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          gone();
          reject(new NoDecision('the caller has gone'));
        });
      });
    const url = await start(t, { decide });
    const controller = new AbortController();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: CHECK });
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    const asked = fetch(url, { method: 'POST', headers, body, signal: controller.signal });
    setTimeout(() => controller.abort(), 200);
    await assert.rejects(asked);
    await left;
  });

  test('answer a batch of messages one of which cancels another', async (t) => {
    const url = await start(t);
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: CHECK };
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } };
    const answer = await post(url, { body: JSON.stringify([call, cancel]), signal: AbortSignal.timeout(10_000) });
    const { id, result } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, id, result.structuredContent.holds], [200, 2, true]);
    assert.equal((await post(url, { body: JSON.stringify([cancel]) })).status, 202);
  });

  test('are for callers with the key, if there is one', async (t) => {
    const url = await start(t, { keys: [KEY] });
    for (const headers of [{}, { authorization: 'Bearer wrong-key-of-the-tools' }]) {
      const { status, headers: sent } = await post(url, { headers });
      assert.deepEqual([status, sent.get('www-authenticate')], [401, 'Bearer']);
    }
    const client = await connect(t, url, { authorization: `Bearer ${KEY}` });
    assert.equal((await client.listTools()).tools.length, 4);
  });

  test('are refused to web pages, and to names that are not of this machine', async (t) => {
    const url = await start(t, { corsOrigins: ['https://app.example'] });
    const { request } = await import('node:http');
    const statusWith = (headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const own = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
        const sent = request(url, { method: 'POST', headers: { ...own, ...headers } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on('error', reject).end(JSON.stringify(INITIALIZE));
      });
    assert.equal(await statusWith({}), 200);
    assert.equal(await statusWith({ host: 'attacker.example' }), 403);
    assert.equal(await statusWith({ origin: 'https://attacker.example' }), 403);
    assert.equal(await statusWith({ origin: 'null' }), 403);
    assert.equal(await statusWith({ 'sec-fetch-site': 'cross-site' }), 403);
    assert.equal(await statusWith({ origin: 'https://app.example' }), 200);
  });

  test('can be called from a web page whose origin is listed', async (t) => {
    const url = await start(t, { corsOrigins: ['https://app.example'] });
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' };
    const preflight = await post(url, { method: 'OPTIONS', headers });
    const allowed = (response: Response) => response.headers.get('access-control-allow-origin');
    assert.deepEqual([preflight.status, allowed(preflight)], [204, 'https://app.example']);
    const answer = await post(url, { headers: { origin: 'https://app.example' } });
    assert.deepEqual([answer.status, allowed(answer)], [200, 'https://app.example']);
    const stranger = await post(url, { method: 'OPTIONS', headers: { ...headers, origin: 'https://other.example' } });
    assert.deepEqual([stranger.status, allowed(stranger)], [405, null]);
  });

  test('are at one path, for POST, within the limit on bodies', async (t) => {
    const url = await start(t);
    assert.equal((await post(new URL('/', url))).status, 404);
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await post(url, { method });
      assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
    }
    assert.equal((await post(url, { body: '{' })).status, 400);
    assert.equal((await post(url, { body: JSON.stringify('x'.repeat(20_000)) })).status, 413);
  });
});
