/** Ends the process after some milliseconds, at any point of swaps from one model to another and back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { loadEngine } from '../../../src/engine/addon.ts';
import { engineOptions, fixture } from '../model-folders.ts';
import { differentRequest } from '../requests.ts';

const [delayMs, status] = process.argv.slice(2).map(Number);
const engine = await loadEngine(engineOptions({ model: fixture('marker') }));
void sleep(delayMs).then(() => process.exit(status));
for (let count = 0; ; count += 1) {
  const swapped = engine.swap(fixture(count % 2 === 0 ? 'shared-state' : 'marker'));
  await Promise.all([swapped, engine.decide(Buffer.from(differentRequest(count)))]);
}
