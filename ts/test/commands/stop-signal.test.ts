import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { Stopped, stopSignal } from '../../src/commands/stop-signal.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Returns a stop signal, the only listener to its signals until the test ends, and the exit codes of the process. */
function startListening(t: TestContext) {
  for (const name of SIGNALS) {
    const others = process.listeners(name);
    process.removeAllListeners(name);
    t.after(() => {
      process.removeAllListeners(name);
      for (const listener of others) process.on(name, listener);
    });
  }
  const exits: unknown[] = [];
  t.mock.method(process, 'exit', (code: unknown) => exits.push(code));
  return { stop: stopSignal(), exits };
}

suite('the stop signal of a command', () => {
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    test(`fires at the first ${name}, with exit code ${code}, and the process goes on`, (t) => {
      const { stop, exits } = startListening(t);
      assert.equal(stop.aborted, false);
      process.emit(name, name);
      assert.ok(stop.reason instanceof Stopped);
      assert.deepEqual([stop.reason.exitCode, exits], [code, []]);
    });
  }

  for (const [first, second, code] of [
    ['SIGINT', 'SIGINT', 130],
    ['SIGTERM', 'SIGTERM', 143],
    ['SIGINT', 'SIGTERM', 143],
    ['SIGTERM', 'SIGINT', 130],
  ] as const) {
    test(`ends the process at once at ${second} after ${first}`, (t) => {
      const { exits } = startListening(t);
      process.emit(first, first);
      process.emit(second, second);
      assert.deepEqual(exits, [code]);
    });
  }
});
