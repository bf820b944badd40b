/** Work on many things at once whose results come in the order of the things. */

/**
 * Each item of `items` with what `work` makes of it, in order, at most `limit` of them at work or waiting for those
 * before them. What `work` throws is thrown in its turn.
 */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
  limit: number,
): AsyncGenerator<readonly [Item, Result]> {
  const line: Promise<readonly [Item, Result]>[] = [];
  for await (const item of items) {
    const result = work(item).then((value) => [item, value] as const);
    // It may fail long before its turn; that is no failure that nobody looks at.
    result.catch(() => {});
    line.push(result);
    const first = line.length < limit ? undefined : line.shift();
    if (first) yield await first;
  }
  for (const result of line) yield await result;
}
