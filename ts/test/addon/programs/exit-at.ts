/** Ends the process after some milliseconds, at any point: while a model loads or in the middle of its runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { loadEngine } from '../../../src/engine/addon.ts';
import { engineOptions } from '../model-folders.ts';
import { manyQuestions } from '../requests.ts';

const [delayMs, status] = process.argv.slice(2).map(Number);
void sleep(delayMs).then(() => process.exit(status));
const engine = await loadEngine(engineOptions());
for (;;) await Promise.all(Array.from({ length: 4 }, () => engine.decide(Buffer.from(manyQuestions(50)))));
