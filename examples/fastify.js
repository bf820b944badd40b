import { createEngine } from '@svc/server';
import fastify from 'fastify';

const engine = await createEngine();
const spam = { type: 'noul', instructions: 'Is this message an advertisement?' };

const app = fastify().addHook('onClose', () => engine.close());
app.post('/messages', async ({ body }) => {
  const { answers } = await engine.decide({ state: body, questions: { spam } });
  return { accepted: answers.spam.noul < 0.9 };
});
console.log(new URL(await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })).port);
