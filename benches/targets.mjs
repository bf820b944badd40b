/** The targets of the measurements, and whether they are met. */

/** The length in tokens of the state that all targets are about; the tables are not limited to it. */
export const STATE_TOKENS = 164;

/** The allowed cost of a request above the floor: this share, or this many milliseconds, whichever is larger. */
const FLOOR = { share: 0.05, ms: 0.15 };

/**
 * Returns the targets: `{what, wanted, measured, isMet}`. A target that was not measured lacks the last two.
 *
 * @param results the results, in the form of `results/latest.json`
 */
export function targets({ series = [], load = [], mix, sweep }) {
  const of = (list, key, questions) =>
    list.find((one) => one.stateTokens === STATE_TOKENS && one.key === key && one.questions === questions);
  const latency = (key, questions) => of(series, key, questions);
  const fresh = latency('new', 1);
  return [
    atMost('eight questions on a new state, of one', 2, latency('new', 8)?.toOneQuestion?.median),
    atMost('one question on a kept state, of the same on a new one', 0.25, latency('kept', 1)?.toNew?.median),
    overFloor(fresh),
    ...[
      ['b1', 8, 8],
      ['b1', 1, 2],
      ['b2', 8, 4],
      ['b2', 1, 1.05],
    ].map(([key, questions, times]) =>
      atLeast(
        `requests/s of (${key}), ${questions} question${questions > 1 ? 's' : ''}, 32 connections`,
        times,
        of(load, key, questions)?.ofNew?.median,
      ),
    ),
    atLeast('half of the states seen before, requests/s of our own without the cache', 1.5, mix?.ratio.median),
    ...[1, 8].map((questions) => {
      const { ms, idealMs } = of(load, 'new', questions) ?? {};
      const what = `p99 at 32 connections, ${questions} question${questions > 1 ? 's' : ''}, of an ideal queue's`;
      return atMost(what, 1.5, quotient(ms?.p99, idealMs?.p99));
    }),
    ...[1, 8].map((questions) => {
      const ways = sweep?.find((one) => one.questions === questions)?.ways;
      const worst = ways?.reduce((a, b) => (a.engineRatio.median > b.engineRatio.median ? a : b));
      const name = worst === undefined ? '' : ` (${worst.key})`;
      const what = `run of ${questions} question${questions > 1 ? 's' : ''}, of the best of the sweep${name}`;
      return atMost(what, 1.1, worst?.engineRatio.median);
    }),
  ];
}

function overFloor(fresh) {
  const what = 'one request over the floor (a)';
  const wanted = `at most ${FLOOR.share * 100} % or ${FLOOR.ms * 1000} us`;
  if (fresh?.overFloorMs === undefined) return { what, wanted };
  const more = fresh.overFloorMs.median;
  const share = fresh.toFloor.median - 1;
  const measured = `${(share * 100).toFixed(1)} %, ${(more * 1000).toFixed(0)} us`;
  return { what, wanted, measured, isMet: share <= FLOOR.share || more <= FLOOR.ms };
}

function atMost(what, limit, measured) {
  return target(what, `at most ${limit.toFixed(2)}`, measured, (value) => value <= limit);
}

function atLeast(what, limit, measured) {
  return target(what, `at least ${limit.toFixed(2)}`, measured, (value) => value >= limit);
}

function target(what, wanted, measured, isMet) {
  return measured === undefined
    ? { what, wanted }
    : { what, wanted, measured: measured.toFixed(2), isMet: isMet(measured) };
}

function quotient(a, b) {
  return a === undefined || b === undefined ? undefined : a / b;
}
