/** Concurrent work on many items, with the results in the order of the items. */

/**
 * The limits on the items that are at work or wait for an earlier one. One item is always allowed, however large it is.
 */
interface Window<Item> {
  readonly items: number;
  /** The total size that the items may have, in the unit that `of` returns for each; the last item may exceed it. */
  readonly size?: { readonly of: (item: Item) => number; readonly most: number };
}

/** An item at work. */
interface Started<Item, Result> {
  readonly size: number;
  readonly result: Promise<readonly [Item, Result]>;
}

/**
 * Yields each item of `items` with the result of `work` for it, in order, within the limits of `window`, and as soon as
 * it is there: no result waits for an item that comes later. An error of `work` is thrown when its item's turn comes.
 */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
  window: Window<Item>,
): AsyncGenerator<readonly [Item, Result]> {
  const { of: sizeOf, most } = window.size ?? { of: () => 0, most: 0 };
  const source = items[Symbol.asyncIterator]();
  const line: Started<Item, Result>[] = [];
  let size = 0;
  let next: Promise<IteratorResult<Item>> | undefined;
  let isAtEnd = false;
  try {
    for (;;) {
      const isFull = line.length >= window.items || (line.length > 0 && size > most);
      if (!isAtEnd && !isFull) next ??= handled(source.next());
      const first = line[0];
      if (next !== undefined && (first === undefined || !(await isSettledBefore(first.result, next)))) {
        const read = await next;
        next = undefined;
        isAtEnd = read.done === true;
        if (read.done === true) continue;
        const item = read.value;
        const result = handled(work(item).then((value) => [item, value] as const));
        line.push({ size: sizeOf(item), result });
        size += sizeOf(item);
      } else if (first === undefined) return;
      else {
        line.shift();
        size -= first.size;
        yield await first.result;
      }
    }
  } finally {
    // A source that is being read ends later; the reader of this generator does not wait for that.
    source.return?.().catch(() => {});
  }
}

/** Returns the promise. It may reject long before its turn; this keeps Node from reporting an unhandled rejection. */
function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => {});
  return promise;
}

/** Resolves when one of the promises has settled, with whether it is the first. */
function isSettledBefore(one: Promise<unknown>, other: Promise<unknown>): Promise<boolean> {
  const settled = (promise: Promise<unknown>, isFirst: boolean) =>
    promise.then(
      () => isFirst,
      () => isFirst,
    );
  return Promise.race([settled(one, true), settled(other, false)]);
}
