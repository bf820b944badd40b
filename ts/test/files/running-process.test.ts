import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { suite, type TestContext, test } from 'node:test';
import { isRunning, startMsOf } from '../../src/files/running-process.ts';
import { until } from '../until.ts';

/** Returns the number of a process that has ended, and whose parent never waits for it. */
async function unwaitedProcess(t: TestContext): Promise<number> {
  const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => parent.kill());
  const [line] = await once(parent.stdout, 'data');
  return Number(line);
}

suite('a process', () => {
  test('runs until it has ended', () => {
    assert.ok(isRunning(process.pid) && isRunning(process.ppid));
    assert.ok(!isRunning(spawnSync(process.execPath, ['--version']).pid));
  });

  if (process.platform === 'linux') {
    test('of another user runs, too', () => {
      assert.ok(isRunning(1));
    });

    test('that was killed, and that its parent has not waited for, does not run', async (t) => {
      const pid = await unwaitedProcess(t);
      await until(() => !isRunning(pid));
      // Its number is still taken.
      assert.ok(process.kill(pid, 0));
    });

    test('began when it began', () => {
      const began = Date.now() - process.uptime() * 1000;
      assert.ok(Math.abs((startMsOf(process.pid) ?? 0) - began) < 3000);
    });
  }

  test('that is not there has no beginning', () => {
    assert.equal(startMsOf(2 ** 30), undefined);
  });
});
