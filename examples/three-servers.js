import { createHash } from 'node:crypto';
import { noul, TypeSafeClient } from '@typesafe-ai/sdk';

const { SVC_URL = 'http://127.0.0.1:21118', SVC_API_KEY = 'any, while the key is off' } = process.env;
const client = new TypeSafeClient({ baseURL: SVC_URL, apiKey: SVC_API_KEY });

/** Returns headers that name a request's state, so that a load balancer sends equal states to the same server. */
const headersFor = (state) => ({
  'x-svc-state': createHash('sha256')
    .update(typeof state === 'string' ? state : JSON.stringify(state))
    .digest('hex')
    .slice(0, 16),
});

const ask = async (state, questions) =>
  (await client.systemOne({ state, questions }, { headers: headersFor(state) })).answers;

const ticket = { subject: 'Invoice', body: 'My card was charged twice and nobody answers my mails' };
const { refund } = await ask(ticket, { refund: noul('Does the customer want money back?') });
// The server has already read the ticket when the second question about it arrives.
const { angry } = await ask(ticket, { angry: noul('Is the customer angry?') });
console.log(refund.noul, angry.noul);
