import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inTime } from '../../src/file-run/in-time.ts';

/** A try that ends after `ms` milliseconds, or when the test does. */
const after = (ms: number, signal: AbortSignal, value: string | undefined) =>
  sleep(ms, value, { signal }).catch(() => undefined);

suite('tries', () => {
  test('have three times as long as the first one took', async (t) => {
    const { signal } = t;
    const tries = [after(500, signal, 'first'), after(1750, signal, 'in time'), after(600_000, signal, 'late')];
    assert.deepEqual(await inTime(tries), ['first', 'in time', undefined]);
  });

  test('have a second more if the first one took almost no time', async (t) => {
    const { signal } = t;
    const tries = [after(600_000, signal, 'late'), Promise.resolve('first'), after(800, signal, 'in time')];
    assert.deepEqual(await inTime(tries), [undefined, 'first', 'in time']);
  });

  test('without a result set no time, and all ended is the end', async (t) => {
    const startMs = performance.now();
    const tries = [Promise.resolve(undefined), after(1500, t.signal, 'after that')];
    assert.deepEqual(await inTime(tries), [undefined, 'after that']);
    assert.ok(performance.now() - startMs >= 1490);
    assert.deepEqual(await inTime([]), []);
  });

  test('have the longest time at most, whether one has a result or none', async (t) => {
    const { signal } = t;
    assert.deepEqual(await inTime([after(600_000, signal, 'late')], 100), [undefined]);
    const tries = [after(100, signal, 'first'), after(800, signal, 'late')];
    assert.deepEqual(await inTime(tries, 300), ['first', undefined]);
  });
});
