/** Numbers and times as people read them. It runs in the server and in the browser, so that both write the same. */

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,345`, and `1.2M` where the last digits say nothing. */
export function formatCount(value: number): string {
  return value < 1_000_000 ? COUNT.format(value) : COMPACT.format(value);
}

/** What stands where a number would be, but there was nothing to measure. */
export const NOTHING = '–';

/** `1 answer`, `2,000 answers`. */
export function formatAmount(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? '' : 's'}`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes in the largest unit that is not too large: `0 B`, `1.5 KiB`, `64 MiB`. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), BYTE_UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, '') : COUNT.format(value)} ${BYTE_UNITS[power]}`;
}

/** Milliseconds with three digits that count, without the unit: `1.93`, `19.3`, `193`, `1,930`. */
export function formatMs(ms: number): string {
  if (ms >= 99.95) return COUNT.format(ms);
  return ms.toFixed(ms >= 9.995 ? 1 : 2);
}

/** A rate per second: `0`, `0.2`, `37.5`, `412`. */
export function formatRate(value: number): string {
  return value === 0 || value >= 99.95 ? COUNT.format(value) : value.toFixed(1);
}

/** A probability from 0 to 1 as a percentage: `43 %`, `0.4 %`. Never `0 %` or `100 %` for what is only close to it. */
export function formatPercent(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '< 0.1 %';
  if (percent < 100 && percent > 99.9) return '> 99.9 %';
  return `${percent.toFixed(percent < 1 || percent > 99 ? 1 : 0).replace(/\.0$/, '')} %`;
}

/** `45 s`, `12 min`, `3 h 12 min`, `4 d 2 h`. */
export function formatDuration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${Math.floor(seconds)} s`;
  if (hours === 0) return `${minutes} min`;
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * The time of day of an RFC 3339 time, `14:03:59`.
 *
 * @param timeZone - Left out in the browser, which knows its own.
 */
export function formatTime(time: string, timeZone?: string): string {
  return new Date(time).toLocaleTimeString('en-GB', timeZone === undefined ? {} : { timeZone });
}

/** Date and time, `2025-01-31 14:03:59 UTC`. */
export function formatDateTime(time: string): string {
  return time.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
}
