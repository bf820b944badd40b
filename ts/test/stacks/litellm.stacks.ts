import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { docBlocks } from '../doc-blocks.ts';
import { freePort } from '../free-port.ts';
import { ProcessOutput } from '../process-output.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { pythonProgram, runSnippet } from './environments.ts';

const PAGE = docBlocks('stacks/litellm.md');
const MASTER_KEY = 'sk-of-the-proxy';
const STATE = 'My card was charged twice and nobody answers my mails';
const QUESTIONS = {
  refund: { type: 'noul', instructions: 'Does the customer want money back?' },
  team: {
    type: 'choice',
    instructions: 'Which team?',
    criteria: { billing: 'payments, invoices', tech: 'bugs, outages' },
  },
  anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'annoyed', 'furious'] },
};
/** The same questions in the format of OpenAI. */
const OPENAI_QUESTIONS = [
  { type: 'predicate', name: 'refund', instructions: 'Does the customer want money back?' },
  {
    type: 'choice',
    name: 'team',
    instructions: 'Which team?',
    choices: [
      { value: 'billing', description: 'payments, invoices' },
      { value: 'tech', description: 'bugs, outages' },
    ],
  },
  {
    type: 'score',
    name: 'anger',
    instructions: 'How angry?',
    levels: ['calm', 'annoyed', 'furious'].map((label) => ({ label })),
  },
];

/** Starts LiteLLM's proxy with the page's configuration in front of a server, and returns its URL. */
async function startProxy(t: TestContext, server: LiveServer): Promise<string> {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const config = PAGE.find(({ language }) => language === 'yaml')?.text ?? '';
  writeFileSync(join(folder, 'litellm.yaml'), config.replaceAll('http://127.0.0.1:21118', server.url.origin));
  const args = ['--config', 'litellm.yaml', '--port', String(port), '--host', '127.0.0.1'];
  const child = spawn(pythonProgram('litellm', 'litellm'), args, {
    cwd: folder,
    env: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True', NO_DOCS: 'True' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { finished } = new ProcessOutput(child);
  t.after(async () => {
    child.kill('SIGTERM');
    await finished;
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/health/liveliness`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) assert.fail((await finished).stderr);
    await sleep(200);
  }
  return url;
}

async function post(url: string, body: object) {
  const headers = { authorization: `Bearer ${MASTER_KEY}`, 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, text, json: () => JSON.parse(text) };
}

suite("LiteLLM's proxy in front of the server", { timeout: 600_000 }, () => {
  test('serves both APIs by both APIs, with the same answers', async (t) => {
    const server = await LiveServer.start(t);
    const url = await startProxy(t, server);
    const direct = JSON.parse(await server.answer(JSON.stringify({ state: STATE, questions: QUESTIONS }))).answers;
    for (const model of ['svc', 'svc-openai']) {
      const systemone = await post(`${url}/v1/systemone`, { model, state: STATE, questions: QUESTIONS });
      assert.equal(systemone.status, 200, systemone.text);
      const { refund, team, anger } = systemone.json().answers;
      assert.equal(refund.noul, direct.refund.noul, model);
      assert.deepEqual([team.choice, team.probabilities], [direct.team.choice, direct.team.probabilities], model);
      assert.deepEqual(anger.probabilities, direct.anger.probabilities, model);

      const decisions = await post(`${url}/v1/decisions`, { model, input: STATE, questions: OPENAI_QUESTIONS });
      assert.equal(decisions.status, 200, decisions.text);
      const [predicate, choice, score] = decisions.json().answers;
      assert.equal(predicate.probability, direct.refund.noul, model);
      assert.equal(choice.choice, direct.team.choice, model);
      assert.equal(score.score.toFixed(4), direct.anger.score.toFixed(4), model);
    }
  });

  test("runs the page's snippet", async (t) => {
    const url = await startProxy(t, await LiveServer.start(t));
    const [{ text = '' } = {}] = PAGE.filter(({ language }) => language === 'python');
    const { stdout, stderr } = await runSnippet('litellm', text.replaceAll('http://127.0.0.1:4000', url));
    assert.match(stdout, /^billing 0\.\d+\n$/, stderr);
  });

  test('guards a model that writes by a decision', async (t) => {
    const url = await startProxy(t, await LiveServer.start(t));
    const chat = (content: string) =>
      post(`${url}/v1/chat/completions`, { model: 'writer', messages: [{ role: 'user', content }] });
    const mail = await chat('My card was charged twice and nobody answers my mails');
    assert.equal(mail.status, 200, mail.text);
    const spam = await chat('BUY NOW! Huge sale, 90% off all watches, only today. Click here to order yours!');
    assert.deepEqual([spam.status, /advertisement/.test(spam.text)], [400, true], spam.text);
  });

  test('passes on the reason of a refusal', async (t) => {
    const url = await startProxy(t, await LiveServer.start(t));
    const questions = { team: { type: 'choice', instructions: 'Which?', criteria: { one: null } } };
    const { status, text } = await post(`${url}/v1/systemone`, { model: 'svc', state: STATE, questions });
    assert.deepEqual([status, /need at least two options/.test(text)], [400, true], text);
  });
});
