import { createEngine } from '@svc/server';
import express from 'express';

const engine = await createEngine();
const team = { type: 'choice', instructions: 'Which team should handle this?', criteria: ['billing', 'tech', 'sales'] };

const app = express().use(express.json());
app.post('/tickets', async ({ body }, res) => {
  const { answers } = await engine.decide({ state: body, questions: { team } });
  res.json({ team: answers.team.confidence < 0.6 ? 'somebody' : answers.team.choice });
});
const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', () => console.log(server.address().port));
