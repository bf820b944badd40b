/** A worker thread that loads an engine, reports that, and keeps the engine busy until the thread is terminated. */
import { parentPort } from 'node:worker_threads';
import { loadEngine } from '../../../src/engine/addon.ts';
import { engineOptions, textOf } from '../model-folders.ts';
import { manyQuestions, THREE_TYPES } from '../requests.ts';

const engine = await loadEngine(engineOptions());
parentPort?.postMessage(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
for (;;) await Promise.all([1, 2, 3].map(() => engine.decide(Buffer.from(manyQuestions(50)))));
