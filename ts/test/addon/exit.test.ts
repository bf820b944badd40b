import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type Ended, runProgram } from './program.ts';

/** `npm run test:long` ends more processes, at random moments. */
const EXITS = 12;
const STATUS = 7;

/** The programs, their activity during the exits, and the time over which the exits are spread, in milliseconds. */
const PROGRAMS = [
  // Loading the model takes about half of the time; after that the model runs without a pause.
  ['exit-at', 'loading and running', 800],
  ['exit-in-swap', 'swaps of the model', 200],
] as const;

suite('process.exit', () => {
  for (const [program, what, spreadMs] of PROGRAMS) {
    test(`at ${EXITS} moments of ${what} ends the process as it was told to, without a crash`, async () => {
      const delays = Array.from({ length: EXITS }, (_, index) => Math.round((index * spreadMs) / EXITS));
      const ends: (Ended & { readonly delayMs: number })[] = [];
      const next = async () => {
        for (let delayMs = delays.pop(); delayMs !== undefined; delayMs = delays.pop()) {
          const end = await runProgram(program, { args: [String(delayMs), String(STATUS)] });
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
  }
});
