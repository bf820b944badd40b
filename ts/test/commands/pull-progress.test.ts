import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { PullProgress, pullLine } from '../../src/commands/pull-progress.ts';

const MIB = 2 ** 20;

suite('the line of a pull', () => {
  for (const [state, hasBar, line] of [
    [
      { bytes: 100 * MIB, total: 400 * MIB, rate: 10 * MIB },
      true,
      '[######------------------] 25 %, 100 MiB of 400 MiB, 10 MiB/s, 30 s left',
    ],
    [{ bytes: 100 * MIB, total: 400 * MIB, rate: 10 * MIB }, false, '25 %, 100 MiB of 400 MiB, 10 MiB/s, 30 s left'],
    [{ bytes: 0, total: 400 * MIB, rate: 0 }, false, '0 %, 0 B of 400 MiB, 0 B/s'],
    [
      { bytes: 400 * MIB - 1, total: 400 * MIB, rate: MIB },
      true,
      '[#######################-] 99 %, 400 MiB of 400 MiB, 1 MiB/s, 1 s left',
    ],
    [
      { bytes: 400 * MIB, total: 400 * MIB, rate: MIB },
      true,
      '[########################] 100 %, 400 MiB: it is checked and tried',
    ],
    [{ bytes: 5, total: 0, rate: 0 }, false, '100 %, 0 B: it is checked and tried'],
  ] as const) {
    test(`says how far it is: ${line}`, () => {
      assert.equal(pullLine(state, hasBar), line);
    });
  }
});

suite('the progress of a pull', () => {
  function begun(t: TestContext, isTerminal: boolean) {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const written: string[] = [];
    const progress = new PullProgress({ isTerminal, write: (text) => written.push(text) });
    t.after(() => progress.end());
    return { progress, written };
  }

  test('is one line on a terminal, drawn again five times a second, and gone at the end', (t) => {
    const { progress, written } = begun(t, true);
    t.mock.timers.tick(1000);
    assert.equal(written.length, 0);
    progress.expects(4 * MIB);
    progress.got(MIB);
    t.mock.timers.tick(400);
    assert.equal(written.length, 2);
    assert.ok(written.every((text) => text.startsWith('\r\u001b[K[######------------------] 25 %, 1 MiB of 4 MiB')));
    progress.end();
    t.mock.timers.tick(1000);
    assert.deepEqual(written.slice(2), ['\r\u001b[K']);
  });

  test('is a plain line every ten seconds elsewhere', (t) => {
    const { progress, written } = begun(t, false);
    progress.expects(4 * MIB);
    progress.got(3 * MIB);
    progress.got(-MIB);
    t.mock.timers.tick(9999);
    assert.deepEqual(written, []);
    t.mock.timers.tick(1);
    assert.match(written.join(), /^50 %, 2 MiB of 4 MiB, [\w.,/ ]+\n$/);
    progress.end();
  });

  test('has the rate of the bytes that come, without those that were there', (t) => {
    t.mock.method(performance, 'now', () => nowMs);
    let nowMs = 0;
    const { progress, written } = begun(t, false);
    progress.expects(400 * MIB);
    progress.had(300 * MIB);
    progress.got(10 * MIB);
    t.mock.timers.tick(10_000);
    nowMs = 10_000;
    progress.got(20 * MIB);
    progress.had(-30 * MIB);
    t.mock.timers.tick(10_000);
    assert.deepEqual(written, ['77 %, 310 MiB of 400 MiB, 0 B/s\n', '75 %, 300 MiB of 400 MiB, 2 MiB/s, 50 s left\n']);
  });
});
