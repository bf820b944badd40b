/** The parts of `GET /stats` that the dashboard reads. */
import type { StatsSnapshot } from '../schemas/stats.ts';

export type Snapshot = StatsSnapshot;

/** Five seconds of the server's statistics. The last bucket of a series is not over. */
export type Bucket = StatsSnapshot['series'][number];

export type RecentRequest = StatsSnapshot['recent'][number];

/** The length of one bucket of the series, in seconds. */
export const BUCKET_SECONDS = 5;

/** Whether a bucket has times: failed requests have none that count. */
export function isAnswered({ requests, errors }: Bucket): boolean {
  return requests > errors;
}
