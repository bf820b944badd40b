/** Work on many things at once whose results come in the order of the things. */

/** How much may be at work, or wait for what is before it. One thing may always be, however large it is. */
export interface Window<Item> {
  readonly items: number;
  /** What the items may have together, in the unit that `of` says of each; the last one may go beyond it. */
  readonly size?: { readonly of: (item: Item) => number; readonly most: number };
}

/**
 * Each item of `items` with what `work` makes of it, in order, with no more at once than `window` says. What `work` throws
 * is thrown in its turn.
 */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
  window: Window<Item>,
): AsyncGenerator<readonly [Item, Result]> {
  const { of: sizeOf, most } = window.size ?? { of: () => 0, most: 0 };
  const line: { readonly size: number; readonly result: Promise<readonly [Item, Result]> }[] = [];
  let size = 0;
  for await (const item of items) {
    const result = work(item).then((value) => [item, value] as const);
    // It may fail long before its turn; that is no failure that nobody looks at.
    result.catch(() => {});
    line.push({ size: sizeOf(item), result });
    size += sizeOf(item);
    while (line.length >= window.items || size > most) {
      const first = line.shift();
      if (first === undefined) break;
      size -= first.size;
      yield await first.result;
    }
  }
  for (const { result } of line) yield await result;
}
