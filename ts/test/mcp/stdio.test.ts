import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { LiveServer } from '../real/live-server.ts';
import { runSvc, SvcProcess } from '../svc-process.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const LAUNCHER = fileURLToPath(new URL('../../../bin/svc.js', import.meta.url));
const { PATH = '' } = process.env;
const KEY = 'the-key-behind-the-tools';
const STATE = 'My card was charged twice and nobody answers my mails';
const CALLS = {
  check: { state: STATE, statement: 'Does the customer want money back?' },
  classify: {
    state: STATE,
    instructions: 'Which team should handle this?',
    options: ['billing', 'tech', 'sales'],
    descriptions: { billing: 'payments, invoices', tech: 'bugs, outages', sales: 'pricing' },
  },
  score: { state: STATE, instructions: 'How angry is the customer?', levels: ['calm', 'annoyed', 'furious'] },
  decide: {
    state: STATE,
    questions: { refund: { type: 'noul', instructions: 'Does the customer want money back?' } },
  },
};

/** Starts `svc mcp` as an MCP client does, and returns the client. */
async function connect(t: TestContext, args: readonly string[], env: Record<string, string> = {}): Promise<Client> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [LAUNCHER, 'mcp', ...args],
    cwd: temporaryFolder(t),
    env: { ...env, PATH },
    stderr: 'inherit',
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  t.after(() => client.close());
  return client;
}

/** Calls every tool, and returns what they found. */
async function callAll(client: Client): Promise<Results> {
  await client.listTools();
  const results = await Promise.all(
    Object.entries(CALLS).map(async ([name, args]) => {
      const { structuredContent, isError, content } = await client.callTool({ name, arguments: args });
      assert.notEqual(isError, true, JSON.stringify(content));
      return [name, structuredContent];
    }),
  );
  return Object.fromEntries(results) as Results;
}

/** The results of all tools. */
interface Results {
  readonly check: { readonly holds: boolean; readonly probability: number };
  readonly classify: { readonly choice: string; readonly probabilities: Readonly<Record<string, number>> };
  readonly score: { readonly level: string; readonly score: number };
  readonly decide: { readonly answers: { readonly refund: { readonly noul: number } } };
}

/** Checks the results by the numbers that README.md has for this state. */
function assertAnswers({ check, classify, score, decide }: Results): void {
  assert.deepEqual([check.holds, check.probability], [false, 0.269153]);
  assert.equal(classify.choice, 'billing');
  assert.deepEqual(classify.probabilities, { billing: 0.525275, tech: 0.217213, sales: 0.257512 });
  assert.deepEqual([score.level, score.score], ['annoyed', 1.081742]);
  assert.equal(decide.answers.refund.noul, 0.269153);
}

suite('svc mcp', { timeout: 120_000 }, () => {
  test("answers the official SDK's client on stdin and stdout, with the answers of the server", async (t) => {
    const client = await connect(t, ['--device', 'cpu', '--threads', '1']);
    assertAnswers(await callAll(client));
  });

  test('lets a server decide', async (t) => {
    const server = await LiveServer.start(t, { env: { SVC_API_KEY: KEY } });
    assertAnswers(await callAll(await connect(t, ['--url', server.url.origin], { SVC_API_KEY: KEY })));
    const stranger = await connect(t, ['--url', server.url.origin]);
    const refused = await stranger.callTool({ name: 'check', arguments: CALLS.check });
    const text = `${server.url.origin} answers 401: {"error":"missing or wrong API key"}`;
    assert.deepEqual([refused.isError, refused.content], [true, [{ type: 'text', text }]]);
  });

  test('gives the fault of a question as the result', async (t) => {
    const client = await connect(t, ['--device', 'cpu', '--threads', '1']);
    const questions = { team: { type: 'choice', criteria: ['one'] } };
    const { isError, content } = await client.callTool({ name: 'decide', arguments: { state: '', questions } });
    assert.deepEqual([isError, content], [true, [{ type: 'text', text: 'team: need at least two options' }]]);
  });

  test('answers its last calls after stdin has ended, and then ends', async (t) => {
    const message = (id: number, method: string, params: object) =>
      JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const input = [
      message(1, 'initialize', hello),
      message(2, 'tools/call', { name: 'check', arguments: CALLS.check }),
    ];
    const options = { cwd: temporaryFolder(t), input: `${input.join('\n')}\n` };
    const { code, stdout, stderr } = await runSvc(t, ['mcp', '--device', 'cpu', '--threads', '1'], options);
    assert.equal(code, 0, stderr);
    const answers = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(answers.find(({ id }) => id === 2)?.result.structuredContent.probability, 0.269153);
    // Nothing but messages may be on stdout.
    assert.ok(answers.every(({ jsonrpc }) => jsonrpc === '2.0'));
  });

  test('waits no longer than drain_ms for its last calls', async (t) => {
    const silent = createServer(() => {});
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    t.after(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'check', arguments: CALLS.check } };
    const options = {
      cwd: temporaryFolder(t),
      input: `${JSON.stringify(call)}\n`,
      env: { SVC_DRAIN_MS: '200' },
    };
    const { code, stdout, stderr } = await runSvc(t, ['mcp', '--url', url], options);
    assert.deepEqual([code, stdout, stderr], [0, '', 'drain_ms is over, open calls are cut off\n']);
  });

  test('ends with one line when its model cannot be loaded', async (t) => {
    const args = ['mcp', '--model', join(temporaryFolder(t), 'nowhere')];
    const { code, stdout, stderr } = await runSvc(t, args, { cwd: temporaryFolder(t), input: '' });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^[^\n]*nowhere[^\n]*\n$/);
  });

  test('is served over HTTP on loopback, and nowhere else', async (t) => {
    const args = ['mcp', '--listen', '127.0.0.1:0', '--device', 'cpu', '--threads', '1'];
    const svc = new SvcProcess(t, args, { cwd: temporaryFolder(t) });
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(await svc.url()));
    await client.connect(transport as Transport);
    assertAnswers(await callAll(client));
    await client.close();
    svc.signal('SIGTERM');
    assert.equal((await svc.finished).code, 0);
    for (const listen of ['0.0.0.0:0', '[::]:0', 'example.com:80', 'unix:/tmp/x.sock', 'nonsense']) {
      const { code, stderr } = await runSvc(t, ['mcp', '--listen', listen], { cwd: temporaryFolder(t) });
      assert.deepEqual([code, stderr], [2, '--listen: must be a loopback address, such as 127.0.0.1:21120\n'], listen);
    }
  });
});
