/** Waits for several tries, for as long as the fastest of them suggests. */

/**
 * Once the first try has a result, the others have this multiple of the time that it took, and at least
 * `SHORTEST_GRACE_MS`.
 */
const GRACE = 3;
const SHORTEST_GRACE_MS = 1000;

/**
 * Returns the results of `tries`, undefined for those without a result in time: once the first has one, the others have
 * a little longer than it took, and all have `mostMs` milliseconds at most.
 */
export async function inTime<Value>(
  tries: readonly Promise<Value | undefined>[],
  mostMs = Number.POSITIVE_INFINITY,
): Promise<(Value | undefined)[]> {
  const startMs = performance.now();
  const found: (Value | undefined)[] = tries.map(() => undefined);
  await new Promise<void>((resolve) => {
    let timer = Number.isFinite(mostMs) ? setTimeout(resolve, mostMs) : undefined;
    let isFirst = true;
    const each = tries.map(async (one, at) => {
      found[at] = await one;
      if (found[at] === undefined || !isFirst) return;
      isFirst = false;
      clearTimeout(timer);
      const tookMs = performance.now() - startMs;
      timer = setTimeout(resolve, Math.min(mostMs - tookMs, Math.max(SHORTEST_GRACE_MS, GRACE * tookMs)));
    });
    void Promise.all(each).then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
  return [...found];
}
