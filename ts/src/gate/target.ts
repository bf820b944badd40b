/** Which request targets the gate lets through. */

/** A path segment that has one spelling only: RFC 3986's unreserved characters, and no dot segment. */
const SEGMENT = String.raw`(?!\.{1,2}(?:[/?]|$))[\w.~-]+`;

/** The query is visible ASCII without `#`: it is passed on as it is and decides nothing. */
const TARGET = new RegExp(String.raw`^/(?:(?<open>health)|v1/(?:${SEGMENT}(?:/${SEGMENT})*/?)?)(?:\?[!"$-~]*)?$`);

/**
 * Returns what a request target needs: nothing (`open`), the key (`keyed`), or undefined when it is not let through.
 *
 * Nothing is decoded or normalised: only a target that every reader takes for the same path matches, so the path that
 * is checked is the path that the server sees. None of the server's paths needs another character.
 *
 * @param target - The request target, byte by byte as the caller sent it.
 */
export function targetAccess(target: string): 'open' | 'keyed' | undefined {
  const match = TARGET.exec(target);
  if (match === null) return undefined;
  const { open } = match.groups ?? {};
  return open === undefined ? 'keyed' : 'open';
}
