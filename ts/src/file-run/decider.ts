/** The interface of the two answering sides: the engine in this process, and servers. */
import type { Problem } from './row.ts';

/** The body of an answer, or the reason why there is none. */
export type Outcome = { readonly body: string; readonly problem?: undefined } | { readonly problem: Problem };

export interface Decider {
  /** The number of requests that the decider takes at once, enough that it never waits for the next one. */
  readonly window: number;
  /**
   * The kind of digest and the digest of the model, such as `graph ...` (of the graph) or `files ...` (of all the
   * model's files); null if the digest is not known.
   */
  readonly model: string | null;
  /**
   * Returns the outcome of one request; a problem in it concerns this request only.
   *
   * @throws Refusal when no request can be answered; the reason of the stop signal when that signal has fired.
   */
  decide(request: DecisionText): Promise<Outcome>;
  close(): Promise<void>;
}

/** A request as two texts, because the state differs from row to row and the questions never do. */
export interface DecisionText {
  readonly stateJson: string;
  readonly questionsJson: string;
}

/** Returns the body of a request, as UTF-8 JSON. */
export function requestBody({ stateJson, questionsJson }: DecisionText): Buffer {
  return Buffer.from(`{"state":${stateJson},"questions":${questionsJson}}`);
}
