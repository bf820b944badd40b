/** What the dashboard reads of `GET /stats`. */
import type { StatsSnapshot } from '../schemas/stats.ts';

/** The three types of a question, in the order in which the pages show them. */
export const QUESTION_TYPES = ['choice', 'score', 'noul'] as const;

export type QuestionType = (typeof QUESTION_TYPES)[number];

export type Snapshot = StatsSnapshot;

/** Five seconds of the server's life. The last one of a series is not over. */
export type Bucket = StatsSnapshot['series'][number];

export type RecentRequest = StatsSnapshot['recent'][number];

/** How long one bucket of the series is. */
export const BUCKET_SECONDS = 5;

/** Returns whether a bucket has times: what got no answer took none that counts. */
export function isAnswered({ requests, errors }: Bucket): boolean {
  return requests > errors;
}
