import { createEngine } from '@svc/server';
import { jsonSchema, tool } from 'ai';

const engine = await createEngine();
const refund = { type: 'noul', instructions: 'Does the customer want money back?' };

/** A tool for `generateText` and `streamText`, with which the model that writes asks the model that decides. */
export const wantsRefund = tool({
  description: 'The probability that a customer wants money back',
  inputSchema: jsonSchema({ type: 'object', properties: { mail: { type: 'string' } }, required: ['mail'] }),
  execute: async ({ mail }, { abortSignal }) =>
    (await engine.decide({ state: mail, questions: { refund } }, { signal: abortSignal })).answers.refund.noul,
});
