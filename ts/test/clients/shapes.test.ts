/**
 * Requests of programs that the package registries did not have when docs/stacks.md was written, as their sources and
 * documentation write them, and the parts of the answers that they read.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { LiveServer } from '../real/live-server.ts';

const KEY = 'the-key-of-other-programs';
const STATE = 'My card was charged twice and nobody answers my mails';

interface Shape {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

const JSON_TYPE = { 'Content-Type': 'application/json' };
const BEARER = { Authorization: `Bearer ${KEY}` };

const SHAPES: Readonly<Record<string, Shape>> = {
  'LangChain4j, with a side of a yes-no question left empty and levels that are described': {
    headers: { ...JSON_TYPE, ...BEARER },
    body: {
      model: 'svc',
      state: { ticket: STATE },
      questions: {
        refund: {
          type: 'noul',
          instructions: 'Does the customer want money back?',
          criteria: { true: 'Asks for a refund', false: '' },
        },
        team: {
          type: 'choice',
          instructions: 'Which team?',
          criteria: { billing: 'payments, invoices', tech: { what: 'bugs', not_for: 'invoices' } },
        },
        anger: {
          type: 'score',
          instructions: 'How angry?',
          criteria: ['calm', { label: 'annoyed', description: 'says so' }, 'furious'],
        },
      },
    },
  },
  'Spring AI, with options that have no description': {
    headers: { ...JSON_TYPE, ...BEARER, Accept: 'application/json' },
    body: {
      model: 'svc',
      state: STATE,
      questions: {
        refund: { type: 'noul', instructions: 'Does the customer want money back?' },
        team: { type: 'choice', instructions: 'Which team?', criteria: { billing: null, tech: null } },
        anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'annoyed', 'furious'] },
      },
    },
  },
  'Genkit, with a state that is an object': {
    headers: { ...JSON_TYPE, ...BEARER, 'User-Agent': 'Go-http-client/1.1', 'Accept-Encoding': 'gzip' },
    body: {
      model: 'jev-latest',
      state: { messages: [{ role: 'user', content: STATE }] },
      questions: {
        refund: { type: 'noul', instructions: 'Does the customer want money back?' },
        team: { type: 'choice', instructions: 'Which team?', criteria: { billing: 'payments', tech: 'bugs' } },
        anger: { type: 'score', instructions: 'How angry?', criteria: ['calm', 'annoyed', 'furious'] },
      },
    },
  },
  'the node for n8n, with descriptions that it makes of the names': {
    headers: { ...JSON_TYPE, ...BEARER },
    body: {
      model: 'jev-latest',
      state: STATE,
      questions: {
        refund: { type: 'noul', instructions: 'Does the customer want money back?' },
        team: { type: 'choice', instructions: 'Which team?', criteria: { billing: 'billing', tech: 'tech' } },
        anger: {
          type: 'score',
          instructions: 'How angry?',
          criteria: ['0 - Low / Safe', '1 - Moderate / Attention Required', '2 - Critical / Urgent'],
        },
      },
    },
  },
};

suite('a request as it is made by', () => {
  for (const [name, { headers, body }] of Object.entries(SHAPES)) {
    test(`${name} gets the answers that it reads`, async (t) => {
      const server = await LiveServer.start(t, { env: { SVC_API_KEY: KEY } });
      const { model, answers, usage } = JSON.parse(await server.answer(JSON.stringify(body), headers));
      assert.equal(model, 'svc');
      const { refund, team, anger } = answers;
      assert.deepEqual([refund.type, team.type, anger.type], ['noul', 'choice', 'score']);
      assert.ok(refund.noul >= 0 && refund.noul <= 1);
      assert.ok(team.choice in team.probabilities);
      assert.deepEqual(Object.keys(anger.probabilities), ['0', '1', '2']);
      assert.ok(anger.score >= 0 && anger.score <= 2);
      for (const { confidence } of [team, anger]) assert.ok(confidence >= 0 && confidence <= 1);
      assert.deepEqual([usage.input_tokens > 0, usage.output_tokens], [true, 0]);
    });
  }
});
