/** Counts of what the server has answered. Its memory is bounded whatever the load. */
import type { Counts } from './engine.ts';
import { ERROR_STATUS, type ErrorCode } from './errors.ts';

/** One finished decision request. */
export interface FinishedDecision {
  /** When it finished, in milliseconds since 1970. */
  readonly timeMs: number;
  /** How long it took. */
  readonly ms: number;
  /** What it was made of; absent when it got no answer. */
  readonly counts?: Counts | undefined;
  /** Why it got no answer. */
  readonly error?: ErrorCode;
}

/** One entry of the list of recent requests. */
export interface RecentDecision {
  readonly timeMs: number;
  readonly ms: number;
  readonly questions: number;
  readonly inputTokens: number;
  readonly status: number;
  readonly error?: ErrorCode;
}

/** How many recent requests are kept. */
const MAX_RECENT = 200;

export class Stats {
  readonly startedAt = new Date();
  requests = 0;
  errors = 0;
  questions = 0;
  inputTokens = 0;
  readonly questionsByType = { choice: 0, score: 0, noul: 0 };
  // A ring: entry i of all that ever were is at i modulo MAX_RECENT.
  readonly #recent: RecentDecision[] = [];

  /** Counts one finished decision. */
  record({ timeMs, ms, counts, error }: FinishedDecision): void {
    const questions = counts ? questionCount(counts) : 0;
    const inputTokens = counts?.inputTokens ?? 0;
    const outcome = error === undefined ? { status: 200 } : { status: ERROR_STATUS[error], error };
    this.#recent[this.requests % MAX_RECENT] = { timeMs, ms, questions, inputTokens, ...outcome };
    this.requests += 1;
    if (error !== undefined) this.errors += 1;
    this.questions += questions;
    this.inputTokens += inputTokens;
    this.questionsByType.choice += counts?.choice ?? 0;
    this.questionsByType.score += counts?.score ?? 0;
    this.questionsByType.noul += counts?.noul ?? 0;
  }

  /** Returns the latest requests, newest first. */
  recent(): RecentDecision[] {
    const oldest = this.requests % MAX_RECENT;
    return [...this.#recent.slice(oldest), ...this.#recent.slice(0, oldest)].reverse();
  }
}

/** Returns how many questions an answered request had. */
export function questionCount({ choice, score, noul }: Counts): number {
  return choice + score + noul;
}
