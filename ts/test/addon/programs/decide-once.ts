/** Answers one request and prints the answer. */
import { loadEngine } from '../../../src/engine/addon.ts';
import { engineOptions, textOf } from '../model-folders.ts';
import { THREE_TYPES } from '../requests.ts';

const engine = await loadEngine(engineOptions());
process.stdout.write(textOf(await engine.decide(Buffer.from(THREE_TYPES))));
await engine.close();
