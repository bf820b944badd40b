/** Waits for something that has to happen by itself. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Resolves once `condition` holds, and fails when that takes more than a minute.
 *
 * @param everyMs - The time between two looks, in milliseconds.
 */
export async function until(condition: () => boolean | Promise<boolean>, everyMs = 2): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!(await condition())) {
    assert.ok(performance.now() < endMs, `not within a minute: ${condition}`);
    await sleep(everyMs);
  }
}
