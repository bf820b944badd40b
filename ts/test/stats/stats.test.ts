import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Counts, Timing } from '../../src/engine/contract.ts';
import type { Percentiles } from '../../src/stats/latencies.ts';
import { Stats } from '../../src/stats/stats.ts';

const MINUTE_MS = 60_000;

/** Returns statistics whose clock and number of waiting requests a test sets. */
function testStats() {
  const clock = { nowMs: 1234, waiting: 0 };
  const stats = new Stats({ now: () => clock.nowMs, waiting: () => clock.waiting });
  return { clock, stats };
}

function timing(totalMs: number, parts: Partial<Timing> = {}): Timing {
  return { encodeMs: totalMs / 10, waitMs: 0, runMs: (totalMs * 9) / 10, totalMs, ...parts };
}

function answer(stats: Stats, totalMs: number, parts?: Partial<Timing>): void {
  stats.record({ timeMs: 0, ms: totalMs, timing: timing(totalMs, parts) });
}

function fail(stats: Stats, ms: number): void {
  stats.record({ timeMs: 0, ms, error: 'queue_timeout' });
}

/** Returns a function that gives random numbers from 0 to 1, the same in every run. */
function randomNumbers(): () => number {
  let state = 42;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Returns a typical time of a server, in ms to 0.01: most are about 5, some a thousand times as long. */
function randomMs(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.round(5 * Math.exp(1.5 * normal) * 100) / 100;
}

/** Returns the nearest-rank percentiles. */
function exactPercentiles(values: Float64Array): Percentiles {
  const sorted = values.slice().sort();
  const at = (percent: number) => sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? Number.NaN;
  return { p50Ms: at(50), p95Ms: at(95), p99Ms: at(99) };
}

function assertWithinOnePercent(actual: Percentiles, expected: Percentiles): void {
  for (const name of ['p50Ms', 'p95Ms', 'p99Ms'] as const) {
    const ratio = actual[name] / expected[name];
    assert.ok(Math.abs(ratio - 1) <= 0.01, `${name}: ${actual[name]} instead of ${expected[name]}`);
  }
}

test('the uptime counts from the beginning of the statistics, not of the process', () => {
  const beforeMs = performance.now();
  const { uptimeSeconds } = new Stats();
  const longest = (performance.now() - beforeMs) / 1000;
  assert.ok(uptimeSeconds >= 0 && uptimeSeconds <= longest, `${uptimeSeconds} s of at most ${longest}`);
});

suite('the times of a million decisions', () => {
  const COUNT = 1_000_000;
  const { clock, stats } = testStats();
  const random = randomNumbers();
  const totals = Float64Array.from({ length: COUNT }, () => randomMs(random));
  const runs = totals.map((ms) => Math.round(ms * 90) / 100);
  for (const [index, totalMs] of totals.entries()) {
    // The answers spread over nearly five minutes, so that every bucket has some of them.
    clock.nowMs = 1234 + (index / COUNT) * 4.9 * MINUTE_MS;
    answer(stats, totalMs, { runMs: runs[index] ?? 0 });
  }

  test('have percentiles that are right to one percent', () => {
    assertWithinOnePercent(stats.latency(), exactPercentiles(totals));
    assertWithinOnePercent(stats.phases().total, exactPercentiles(totals));
    assertWithinOnePercent(stats.phases().run, exactPercentiles(runs));
  });

  test('have an average and a maximum that are exact', () => {
    const { avgMs, maxMs } = stats.latency();
    assert.ok(Math.abs(avgMs - totals.reduce((sum, ms) => sum + ms, 0) / COUNT) < 0.001);
    assert.equal(
      maxMs,
      Math.max(...Array.from({ length: 1000 }, (_, i) => Math.max(...totals.slice(i * 1000, i * 1000 + 1000)))),
    );
  });

  test('are counted, all of them, in the series', () => {
    const counted = stats.series().reduce((sum, { requests }) => sum + requests, 0);
    assert.equal(counted, COUNT);
  });

  test('have percentiles that are right to one percent when half of them are too old', () => {
    clock.nowMs = 1234 + 7.5 * MINUTE_MS;
    // Buckets are five seconds long, so the number of answers that are left is taken from the series.
    const kept = stats.series().reduce((sum, { requests }) => sum + requests, 0);
    assert.ok(kept > COUNT * 0.4 && kept < COUNT * 0.6, String(kept));
    assertWithinOnePercent(stats.latency(), exactPercentiles(totals.slice(COUNT - kept)));
  });
});

suite('times', () => {
  test('are all zero before anything is answered', () => {
    const { stats } = testStats();
    const none = { p50Ms: 0, p95Ms: 0, p99Ms: 0 };
    assert.deepEqual(stats.latency(), { avgMs: 0, ...none, maxMs: 0 });
    assert.deepEqual(stats.phases(), { encode: none, wait: none, run: none, total: none });
  });

  test('are those of the last five minutes', () => {
    const { clock, stats } = testStats();
    answer(stats, 900);
    clock.nowMs += 4 * MINUTE_MS;
    answer(stats, 100);
    assert.equal(stats.latency().maxMs, 900);
    assert.equal(stats.latency().avgMs, 500);
    // Two steps have left the window by now: the one that holds the answer of 900 ms, and an empty one.
    clock.nowMs += 1 * MINUTE_MS + 7_000;
    assert.deepEqual(stats.latency(), { avgMs: 100, p50Ms: 100, p95Ms: 100, p99Ms: 100, maxMs: 100 });
    clock.nowMs += 4 * MINUTE_MS;
    assert.equal(stats.latency().maxMs, 0);
    assert.equal(stats.phases().run.p50Ms, 0);
  });

  // Some of these times end in the slot of the step that has the answer, others in that of an empty step.
  for (const seconds of [300, 307, 595, 60_000, 60_067]) {
    test(`are forgotten after ${seconds} s without a request`, () => {
      const { clock, stats } = testStats();
      answer(stats, 900);
      clock.nowMs += seconds * 1000;
      answer(stats, 10);
      assert.deepEqual(stats.latency(), { avgMs: 10, p50Ms: 10, p95Ms: 10, p99Ms: 10, maxMs: 10 });
    });
  }

  test('leave out what got no answer', () => {
    const { stats } = testStats();
    answer(stats, 10);
    fail(stats, 60_000);
    assert.equal(stats.latency().maxMs, 10);
    assert.equal(stats.requests, 2);
  });

  test('of no length, and longer than any that is known, are counted too', () => {
    const { stats } = testStats();
    answer(stats, 0);
    answer(stats, 1e9);
    assert.equal(stats.latency().maxMs, 1e9);
    assert.equal(stats.latency().p50Ms, 0.001);
  });
});

suite('the series', () => {
  test('is sixty steps of five seconds, oldest first, with now in the last', () => {
    const { clock, stats } = testStats();
    clock.nowMs += 12_000;
    const times = stats.series().map(({ timeMs }) => timeMs);
    assert.equal(times.length, 60);
    for (const [index, timeMs] of times.slice(1).entries()) assert.equal(timeMs - (times[index] ?? 0), 5000);
    const age = Date.now() - (times.at(-1) ?? 0);
    assert.ok(age >= 2000 && age < 2500, String(age));
  });

  test('has each request in its step', () => {
    const { clock, stats } = testStats();
    answer(stats, 10);
    answer(stats, 30);
    clock.nowMs += 5000;
    fail(stats, 5);
    clock.nowMs += 15_000;
    answer(stats, 50, { encodeMs: 1, waitMs: 9, runMs: 40 });
    const steps = stats.series().slice(-5);
    assert.deepEqual(
      steps.map(({ requests, errors, p99Ms }) => [requests, errors, p99Ms]),
      [
        [2, 0, 30],
        [1, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
        [1, 0, 50],
      ],
    );
    assert.deepEqual(
      steps.map(({ encodeMs, waitMs, runMs }) => [encodeMs, waitMs, runMs]),
      [[2, 0, 18], ...Array<number[]>(3).fill([0, 0, 0]), [1, 9, 40]],
    );
    assert.equal(stats.series()[0]?.requests, 0);
  });

  test('says how many waited when a step ended', () => {
    const { clock, stats } = testStats();
    answer(stats, 10);
    clock.nowMs += 5000;
    clock.waiting = 7;
    answer(stats, 10);
    clock.waiting = 3;
    assert.deepEqual(
      stats
        .series()
        .slice(-3)
        .map(({ waiting }) => waiting),
      [0, 7, 3],
    );
  });

  test('says that who waits now waited in all steps since the last request', () => {
    const { clock, stats } = testStats();
    answer(stats, 10);
    clock.nowMs += 20_000;
    clock.waiting = 7;
    const waiting = stats.series().map((step) => step.waiting);
    assert.deepEqual(waiting.slice(-6), [0, 7, 7, 7, 7, 7]);
  });

  test('drops a step after five minutes', () => {
    const { clock, stats } = testStats();
    answer(stats, 10);
    clock.nowMs += 295_000;
    assert.equal(stats.series()[0]?.requests, 1);
    clock.nowMs += 5000;
    assert.ok(stats.series().every(({ requests }) => requests === 0));
  });

  test('stays when the clock of the machine goes back', () => {
    const { clock, stats } = testStats();
    clock.nowMs += 20_000;
    answer(stats, 10);
    clock.nowMs -= 10_000;
    answer(stats, 20);
    assert.equal(stats.series().at(-1)?.requests, 2);
  });
});

suite('confidences', () => {
  function counts(noul: readonly number[]): Counts {
    const confidences = { choice: [], score: [0.55], noul };
    return { choice: 0, score: 1, noul: noul.length, inputTokens: 1, truncatedTokens: 0, confidences };
  }

  test('are counted by tenths and type, 1 in the last', () => {
    const { stats } = testStats();
    for (const noul of [
      [0, 0.05, 0.1],
      [0.999, 1],
    ]) {
      stats.record({ timeMs: 0, ms: 1, timing: timing(1), counts: counts(noul) });
    }
    assert.deepEqual(stats.confidences, {
      choice: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      score: [0, 0, 0, 0, 0, 2, 0, 0, 0, 0],
      noul: [2, 1, 0, 0, 0, 0, 0, 0, 0, 2],
    });
  });
});

test('to count a decision takes microseconds', () => {
  const { stats } = testStats();
  const confidences = { choice: [], score: [], noul: [0.5] };
  const counts = { choice: 0, score: 0, noul: 1, inputTokens: 1, truncatedTokens: 0, confidences };
  const finished = { timeMs: 0, ms: 10, timing: timing(10), counts };
  // On a busy machine, a round may include the time of other programs; not every round does.
  const rounds = Array.from({ length: 20 }, () => {
    const startMs = performance.now();
    for (let i = 0; i < 500; i += 1) stats.record(finished);
    return (performance.now() - startMs) * 2;
  });
  const us = Math.min(...rounds);
  assert.ok(us < 50, `${us} us`);
});
