/** The header by which a server says when it may be asked again. */

/**
 * Returns the milliseconds that a `Retry-After` asks for, which is a number of seconds or a date; 0 for a date that is
 * over, and undefined for a value that is neither.
 */
export function retryAfterMsIn(value: string | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
