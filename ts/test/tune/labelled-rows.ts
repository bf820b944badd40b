/** Labels that are drawn from probabilities, the same at every run. */

/** Returns a function that gives random numbers from 0 to 1, the same for each seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns an index that is drawn with these probabilities. */
export function drawn(probabilities: Iterable<number>, random: () => number): number {
  let left = random();
  let last = 0;
  for (const [index, p] of [...probabilities].entries()) {
    last = index;
    left -= p;
    if (left < 0) return index;
  }
  return last;
}

/** Returns `count` different texts that vary about as much as tickets do. */
export function states(count: number): string[] {
  const things = ['The card', 'My order', 'The invoice', 'Your app', 'The price', 'A parcel', 'The refund'];
  const deeds = ['never came', 'was charged twice', 'does not work', 'is lovely', 'is too high', 'is broken'];
  const ends = ['again.', 'and nobody answers!', 'since Monday.', 'thank you.', 'what now?'];
  const pick = (list: readonly string[], index: number) => list[index % list.length] ?? '';
  return Array.from({ length: count }, (_, index) =>
    [pick(things, index), pick(deeds, Math.floor(index / 7)), pick(ends, Math.floor(index / 42)), `(${index})`].join(
      ' ',
    ),
  );
}
