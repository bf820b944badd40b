/** Concurrent work on many items, with the results in the order of the items. */

/**
 * The limits on the items that are at work or wait for an earlier one. One item is always allowed, however large it is.
 */
interface Window<Item> {
  readonly items: number;
  /** The total size that the items may have, in the unit that `of` returns for each; the last item may exceed it. */
  readonly size?: { readonly of: (item: Item) => number; readonly most: number };
}

/**
 * Yields each item of `items` with the result of `work` for it, in order, within the limits of `window`. An error of
 * `work` is thrown when its item's turn comes.
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
    // The promise may reject long before its turn; this handler keeps Node from reporting an unhandled rejection.
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
