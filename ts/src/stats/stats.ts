/** The statistics of decisions: counts since the start, durations of the last five minutes. Their memory is bounded. */
import type { Counts, Timing } from '../engine/contract.ts';
import { ERROR_STATUS, type ErrorCode } from '../errors.ts';
import { QUESTION_TYPES } from '../schemas/names.ts';
import {
  type Interval,
  Latencies,
  type LatenciesOptions,
  type Latency,
  type Percentiles,
  type PerPhase,
} from './latencies.ts';

/** One finished decision request. */
export interface FinishedDecision {
  /** When the request finished, in milliseconds since 1970. */
  readonly timeMs: number;
  /** How long the request took. */
  readonly ms: number;
  /** The durations of its phases; absent when it got no answer. */
  readonly timing?: Timing | undefined;
  /** The counts of its questions and tokens; absent when it got no answer. */
  readonly counts?: Counts | undefined;
  /** Why the request got no answer. */
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

/** One value for each type of question. */
type PerQuestionType<Value> = Record<(typeof QUESTION_TYPES)[number], Value>;

/** The number of recent requests that are kept. */
const MAX_RECENT = 200;

/** The number of steps in which the confidences from 0 to 1 are counted: tenths. */
const CONFIDENCE_STEPS = 10;

export class Stats {
  /** Decision requests, answered or not, including those that were refused before they were read. */
  requests = 0;
  errors = 0;
  questions = 0;
  inputTokens = 0;
  readonly questionsByType: PerQuestionType<number> = { choice: 0, score: 0, noul: 0 };
  /** How many answers had a confidence from 0 to 0.1, from 0.1 to 0.2, and so on; the last step includes 1. */
  readonly confidences: PerQuestionType<number[]> = { choice: noSteps(), score: noSteps(), noul: noSteps() };
  readonly #latencies: Latencies;
  readonly #startMs = performance.now();
  // A ring: entry number i since the start is at index i modulo MAX_RECENT.
  readonly #recent: RecentDecision[] = [];
  #read = 0;

  constructor(options: LatenciesOptions = {}) {
    this.#latencies = new Latencies(options);
  }

  get uptimeSeconds(): number {
    return (performance.now() - this.#startMs) / 1000;
  }

  /** Counts one finished decision. */
  record({ timeMs, ms, timing, counts, error }: FinishedDecision): void {
    const questions = counts ? questionCount(counts) : 0;
    const inputTokens = counts?.inputTokens ?? 0;
    const outcome = error === undefined ? { status: 200 } : { status: ERROR_STATUS[error], error };
    this.#recent[this.#read % MAX_RECENT] = { timeMs, ms, questions, inputTokens, ...outcome };
    this.#read += 1;
    this.requests += 1;
    if (error !== undefined) this.errors += 1;
    this.questions += questions;
    this.inputTokens += inputTokens;
    if (counts) this.#countAnswers(counts);
    this.#latencies.record(timing);
  }

  /**
   * Counts a decision request that was refused before it was read, because of its method, its caller, or the end of the
   * server.
   */
  recordRefused(): void {
    this.requests += 1;
    this.errors += 1;
  }

  #countAnswers(counts: Counts): void {
    for (const type of QUESTION_TYPES) {
      this.questionsByType[type] += counts[type];
      const steps = this.confidences[type];
      for (const confidence of counts.confidences[type]) {
        const step = Math.min(Math.floor(confidence * CONFIDENCE_STEPS), CONFIDENCE_STEPS - 1);
        steps[step] = (steps[step] ?? 0) + 1;
      }
    }
  }

  /** Returns the latest requests, newest first. */
  recent(): RecentDecision[] {
    const oldest = this.#read % MAX_RECENT;
    return [...this.#recent.slice(oldest), ...this.#recent.slice(0, oldest)].reverse();
  }

  /** Returns the durations of the decisions that were answered in the last five minutes. */
  latency(): Latency {
    return this.#latencies.latency();
  }

  /** Returns the durations of these decisions by phase. */
  phases(): PerPhase<Percentiles> {
    return this.#latencies.phases();
  }

  /** Returns the last five minutes in steps of five seconds, oldest first. */
  series(): Interval[] {
    return this.#latencies.series();
  }
}

function noSteps(): number[] {
  return Array<number>(CONFIDENCE_STEPS).fill(0);
}

/** Returns how many questions an answered request had. */
export function questionCount({ choice, score, noul }: Counts): number {
  return choice + score + noul;
}
