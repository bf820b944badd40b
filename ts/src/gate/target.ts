/** The request targets that the gate lets through. */

/** A path segment with only one spelling: RFC 3986's unreserved characters, and no dot segment. */
const SEGMENT = String.raw`(?!\.{1,2}(?:[/?]|$))[\w.~-]+`;

/** The targets that pass. A query is visible ASCII without `#`; it is forwarded unchanged and decides nothing. */
const TARGET = new RegExp(String.raw`^/(?:(?<open>health)|v1/(?:${SEGMENT}(?:/${SEGMENT})*/?)?)(?:\?[!"$-~]*)?$`);

/**
 * Returns the access that a request target needs: none (`open`), the key (`keyed`), or undefined if it is not let
 * through.
 *
 * Nothing is decoded or normalised: only a target that every reader takes for the same path matches, so the path that
 * the gate checks is the path that the server sees. No path of the server needs another character.
 *
 * @param target - The request target, byte by byte as the caller sent it.
 */
export function targetAccess(target: string): 'open' | 'keyed' | undefined {
  const match = TARGET.exec(target);
  if (match === null) return undefined;
  const { open } = match.groups ?? {};
  return open === undefined ? 'keyed' : 'open';
}
