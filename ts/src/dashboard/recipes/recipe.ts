/** The form of a recipe: a whole decision that people need, with its reasons and the actions on its answer. */

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

interface DecisionRequest {
  readonly state: unknown;
  readonly questions: Readonly<Record<string, Choice | Score | Noul>>;
}

/** One action, and the answer that calls for it. */
interface Step {
  readonly when: string;
  readonly action: string;
}

export interface Recipe {
  /** The last segment of the recipe's address. */
  readonly name: string;
  readonly title: string;
  /** The recipe in one line, for the list. */
  readonly summary: string;
  /** The reasons for this decision and for this form of it. */
  readonly why: string;
  readonly request: DecisionRequest;
  /** The actions on the answer, the surest answer first. */
  readonly steps: readonly Step[];
}

/** Returns the request as the JSON text that is sent. No name in a recipe looks like a number, so the order is kept. */
export function recipeText({ request }: Recipe): string {
  return JSON.stringify(request, null, 2);
}
