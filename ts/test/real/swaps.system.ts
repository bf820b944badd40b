import assert from 'node:assert/strict';
import { test } from 'node:test';
import { growthMiB, MAX_GROWTH_MIB, swapUnderLoad } from './swapped-load.ts';

/** The number of swaps; `npm run test:long` does more. */
const SWAPS = 60;

test(`${SWAPS} swaps between two models under load: every answer is one model's, none fails, the memory stays flat`, async (t) => {
  const { answers, batches, rssMiB } = await swapUnderLoad(t, SWAPS);
  assert.ok(answers > SWAPS && batches > 0, `${answers} answers, ${batches} batches`);
  assert.ok(growthMiB(rssMiB) < MAX_GROWTH_MIB, rssMiB.join(' '));
});
