/** Who answers: the engine in this process, or servers. */
import type { Problem } from './row.ts';

/** The body of an answer, or why there is none. */
export type Outcome = { readonly body: string; readonly problem?: undefined } | { readonly problem: Problem };

export interface Decider {
  /** Requests that it takes at once so that it never waits for the next. */
  readonly window: number;
  /** What is digested and its digest, such as `graph` or all `files` of the model; null where it is not known. */
  readonly model: string | null;
  /**
   * The outcome of one request: a problem is the request's own.
   *
   * @throws Refusal when no request can be answered; the reason of the stop signal when that has fired.
   */
  decide(request: DecisionText): Promise<Outcome>;
  close(): Promise<void>;
}

/** A request in two texts, since the first differs from row to row and the other never. */
export interface DecisionText {
  readonly stateJson: string;
  readonly questionsJson: string;
}

/** The body of a request. */
export function requestBody({ stateJson, questionsJson }: DecisionText): Buffer {
  return Buffer.from(`{"state":${stateJson},"questions":${questionsJson}}`);
}
