/**
 * Asks the engine for all reference answers of model folders, and prints a line for each: `node golden.js FOLDER...`.
 * One process asks for all of them, because it runs under an emulator, where a start takes seconds.
 */
import process from 'node:process';
import { loadEngine } from '../../../src/engine/addon.ts';
import { engineOptions, type Golden, goldenLines } from '../../addon/model-folders.ts';

/** The line that the program prints for a folder. */
export interface Checked {
  readonly folder: string;
  readonly exactness: string;
  readonly answers: number;
  /** The largest difference of a probability from the reference; null if an answer has other labels. */
  readonly worst: number | null;
}

/** Returns the largest difference of a probability in an answer to a reference request. */
function difference({ probabilities }: Golden, response: string): number {
  const { answers } = JSON.parse(response);
  const differences = Object.entries(probabilities).flatMap(([id, expected]) =>
    Object.entries(expected).map(([label, value]) => Math.abs(answers[id].probabilities[label] - value)),
  );
  return Math.max(...differences);
}

async function check(folder: string): Promise<Checked> {
  const engine = await loadEngine(engineOptions({ model: folder, threads: 1, requestTimeoutMs: 3e6, maxRunMs: 3e6 }));
  const lines = goldenLines(folder);
  const differences: number[] = [];
  for (const line of lines) {
    const { body, failure } = await engine.decide(Buffer.from(line.body)).then((reply) => ({ body: '', ...reply }));
    if (failure !== undefined) throw new Error(`${folder}: ${line.name}: ${failure.message}`);
    differences.push(difference(line, body.toString('utf8')));
  }
  const { exactness } = engine.info();
  await engine.close();
  return { folder, exactness, answers: lines.length, worst: Math.max(...differences) };
}

for (const folder of process.argv.slice(2)) process.stdout.write(`${JSON.stringify(await check(folder))}\n`);
