import { serve } from '@hono/node-server';
import { createEngine } from '@svc/server';
import { Hono } from 'hono';

const engine = await createEngine();
const anger = { type: 'score', instructions: 'How angry is the customer?', criteria: ['calm', 'annoyed', 'furious'] };

const app = new Hono().post('/calls', async (c) => {
  const state = await c.req.text();
  const { answers } = await engine.decide({ state, questions: { anger } }, { signal: c.req.raw.signal });
  return c.json({ urgent: answers.anger.score > 1.5 });
});
const port = Number(process.env.PORT ?? 3000);
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, (address) => console.log(address.port));
