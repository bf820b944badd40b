/**
 * Numbers and times as people read them. The server and the browser both run this code, so that both write the same
 * text.
 */

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Returns a count such as `12,345`, or `1.2M` from a million on, where the last digits no longer matter. */
export function formatCount(value: number): string {
  return value < 1_000_000 ? COUNT.format(value) : COMPACT.format(value);
}

/** The text in the place of a number that could not be measured. */
export const NOTHING = '–';

/** Returns a count with its noun, such as `1 answer` or `2,000 answers`. */
export function formatAmount(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Returns bytes in the largest suitable unit: `0 B`, `1.5 KiB`, `64 MiB`. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), BYTE_UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, '') : COUNT.format(value)} ${BYTE_UNITS[power]}`;
}

/** Returns milliseconds with three significant digits, without the unit: `1.93`, `19.3`, `193`, `1,930`. */
export function formatMs(ms: number): string {
  if (ms >= 99.95) return COUNT.format(ms);
  return ms.toFixed(ms >= 9.995 ? 1 : 2);
}

/** Returns a rate per second: `0`, `0.2`, `37.5`, `412`. */
export function formatRate(value: number): string {
  return value === 0 || value >= 99.95 ? COUNT.format(value) : value.toFixed(1);
}

/**
 * Returns a probability from 0 to 1 as a percentage: `43 %`, `0.4 %`. A value that is only close to 0 or 1 is never
 * shown as `0 %` or `100 %`.
 */
export function formatPercent(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '< 0.1 %';
  if (percent < 100 && percent > 99.9) return '> 99.9 %';
  return `${percent.toFixed(percent < 1 || percent > 99 ? 1 : 0).replace(/\.0$/, '')} %`;
}

/** Returns a duration, such as `45 s`, `12 min`, `3 h 12 min` or `4 d 2 h`. */
export function formatDuration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${Math.floor(seconds)} s`;
  if (hours === 0) return `${minutes} min`;
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * Returns the time of day of an RFC 3339 time, `14:03:59`.
 *
 * @param timeZone - Left out in the browser, which knows its own time zone.
 */
export function formatTime(time: string, timeZone?: string): string {
  return new Date(time).toLocaleTimeString('en-GB', timeZone === undefined ? {} : { timeZone });
}

/** Returns the date and time of an RFC 3339 time in UTC, `2025-01-31 14:03:59 UTC`. */
export function formatDateTime(time: string): string {
  return time.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
}
