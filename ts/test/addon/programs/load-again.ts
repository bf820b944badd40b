/** Loads, asks and closes one engine after another, and prints the resident memory after each, in MiB. */
import { loadEngine } from '../../../src/engine/addon.ts';
import { engineOptions, textOf } from '../model-folders.ts';
import { THREE_TYPES } from '../requests.ts';

const rounds = Number(process.argv[2]);
const rssMiB: number[] = [];
for (let round = 0; round < rounds; round++) {
  const engine = await loadEngine(engineOptions());
  textOf(await engine.decide(Buffer.from(THREE_TYPES)));
  await engine.close();
  rssMiB.push(Math.round(process.memoryUsage.rss() / 2 ** 20));
}
process.stdout.write(JSON.stringify(rssMiB));
