/** The name that a misspelt one may mean. */

/** The most characters of a name that are compared. */
const MAX_CHARACTERS = 64;

/**
 * Returns the candidate that differs least from `name`, if the edits are at most a third of the characters behind
 * `prefix`, with which all of these names begin. Undefined when none is that near.
 */
export function nearestName(name: string, candidates: readonly string[], prefix = ''): string | undefined {
  const most = Math.ceil((name.length - prefix.length) / 3);
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(name, candidate) }))
    .filter(({ edits }) => edits <= most);
  return ranked.toSorted((one, other) => one.edits - other.edits)[0]?.candidate;
}

/** Returns how many characters must be added, left out or changed (Levenshtein). */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...from.slice(0, MAX_CHARACTERS)].entries()) {
    const next = [at + 1];
    for (let column = 1; column <= to.length; column += 1) {
      const changed = (row[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
