import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Ended, runProgram } from './program.ts';

const EXITS = 40;
/** The exits are spread over this time: the model is loaded in about half of it, then it runs without a pause. */
const SPREAD_MS = 800;
const STATUS = 7;

suite('process.exit', () => {
  test(`at ${EXITS} moments of loading and running ends the process as it was told to, without a crash`, async () => {
    const delays = Array.from({ length: EXITS }, (_, index) => Math.round((index * SPREAD_MS) / EXITS));
    const ends: (Ended & { readonly delayMs: number })[] = [];
    const next = async () => {
      for (let delayMs = delays.pop(); delayMs !== undefined; delayMs = delays.pop()) {
        const end = await runProgram('exit-at', { args: [String(delayMs), String(STATUS)] });
        ends.push({ ...end, delayMs });
      }
    };
    await Promise.all([next(), next()]);
    const clean = { code: STATUS, signal: null, stdout: '', stderr: '' };
    assert.deepEqual(
      ends,
      ends.map(({ delayMs }) => ({ ...clean, delayMs })),
    );
    assert.equal(ends.length, EXITS);
  });
});
