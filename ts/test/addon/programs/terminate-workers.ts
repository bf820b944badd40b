/** Terminates worker threads in the middle of their runs, while the main thread's own engine keeps answering. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { loadEngine } from '../../../src/engine/addon.ts';
import { answersText, engineOptions, textOf } from '../model-folders.ts';
import { THREE_TYPES } from '../requests.ts';

const ROUNDS = 3;
const WORKERS = 3;

const engine = await loadEngine(engineOptions());
const ask = async () => answersText(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
const answers = new Set([await ask()]);
for (let round = 0; round < ROUNDS; round++) {
  const workers = Array.from({ length: WORKERS }, () => new Worker(new URL('worker.js', import.meta.url)));
  const messages = await Promise.all(workers.map((worker) => once(worker, 'message')));
  for (const [answer] of messages) answers.add(answersText(answer));
  await sleep(20 * round);
  await Promise.all(workers.map((worker) => worker.terminate()));
  answers.add(await ask());
}
// This worker is terminated while it loads its model.
const early = new Worker(new URL('worker.js', import.meta.url));
await sleep(100);
await early.terminate();
answers.add(await ask());
await engine.close();
process.stdout.write(String(answers.size));
