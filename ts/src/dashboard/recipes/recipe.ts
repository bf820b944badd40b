/** What a recipe is: a whole decision that people need, with the reasons and what to do with the answer. */

interface Choice {
  readonly type: 'choice';
  readonly instructions: string;
  readonly criteria: Readonly<Record<string, string>>;
}

interface Score {
  readonly type: 'score';
  readonly instructions: string;
  readonly criteria: readonly string[];
}

interface Noul {
  readonly type: 'noul';
  readonly instructions: string;
  readonly criteria?: { readonly true?: string; readonly false?: string };
}

export interface DecisionRequest {
  readonly state: unknown;
  readonly questions: Readonly<Record<string, Choice | Score | Noul>>;
}

/** One thing to do, and the answer that calls for it. */
export interface Step {
  readonly when: string;
  readonly action: string;
}

export interface Recipe {
  /** The end of its address. */
  readonly name: string;
  readonly title: string;
  /** One line for the list. */
  readonly summary: string;
  /** Why one asks this, and why in this way. */
  readonly why: string;
  readonly request: DecisionRequest;
  /** What to do with the answer, the surest first. */
  readonly steps: readonly Step[];
}

/** Returns the request as the JSON text that is sent. No name in a recipe looks like a number, so the order is kept. */
export function recipeText({ request }: Recipe): string {
  return JSON.stringify(request, null, 2);
}
