import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Pace } from '../../src/file-run/pace.ts';

function paceOf(bytes: number, ms: number): Pace {
  const pace = new Pace();
  for (let n = 0; n < 20; n++) pace.answered(bytes, ms);
  return pace;
}

suite('the time for an answer', () => {
  test('is long before there was one: a server may have to read its model first', () => {
    assert.equal(new Pace().timeoutMs(1000, 0), 180_000);
  });

  test('follows from what answers took and from their bytes, between 10 and 180 seconds', () => {
    assert.equal(paceOf(1000, 10).timeoutMs(1000, 0), 10_000);
    assert.equal(paceOf(1000, 2000).timeoutMs(1000, 0), 40_000);
    assert.equal(paceOf(1000, 60_000).timeoutMs(1000, 0), 180_000);
    const large = paceOf(1000, 10).timeoutMs(8_000_000, 0);
    assert.ok(large > 100 * 1000, String(large));
  });

  test('grows with each time that a row was cut, so that no row is cut for ever', () => {
    const pace = paceOf(1000, 10);
    assert.deepEqual(
      [0, 1, 2, 10].map((cuts) => pace.timeoutMs(1000, cuts)),
      [10_000, 20_000, 40_000, 180_000],
    );
  });

  test('follows a server that becomes slower or faster', () => {
    const pace = paceOf(1000, 10);
    for (let n = 0; n < 20; n++) pace.answered(1000, 1000);
    assert.ok((pace.expectedMs(1000) ?? 0) > 900);
    pace.tookAtLeast(1000, 10);
    assert.ok((pace.expectedMs(1000) ?? 0) > 900);
    for (let n = 0; n < 40; n++) pace.answered(1000, 10);
    assert.ok((pace.expectedMs(1000) ?? 0) < 20);
  });
});
