/**
 * The loaded model's answers to the recipes: each is requested at the first view of its page, and kept as long as the
 * model is loaded.
 */

import type { RecipeAnswer } from '../dashboard/recipe-pages.ts';
import { type Recipe, recipeText } from '../dashboard/recipes/recipe.ts';
import { HttpFailure } from '../errors.ts';
import type { EngineSlot, LoadedModel } from '../model/slot.ts';

/** The health record's source of the model that comes with the server. */
const EMBEDDED = 'embedded';

const NOT_ASKED = 'There is no answer yet. Open the request in the playground to ask for one.';

export class RecipeAnswers {
  readonly #slot: EngineSlot;
  /** The answers of the model with the digest `#digest`, by the recipes' names. */
  readonly #kept = new Map<string, Promise<RecipeAnswer>>();
  #digest = '';

  constructor(slot: EngineSlot) {
    this.#slot = slot;
  }

  /**
   * Returns the answer to `recipe`, or the reason why there is none now. A failure is not kept.
   *
   * @param mayAsk - Whether the viewer may cause a request to the model; kept answers are shown to everyone who sees
   * the page.
   */
  async get(recipe: Recipe, mayAsk: boolean): Promise<RecipeAnswer> {
    const model = this.#slot.model;
    if (!model) return { problem: loadProblem(this.#slot) };
    if (model.info.digest !== this.#digest) {
      this.#kept.clear();
      this.#digest = model.info.digest;
    }
    const known = this.#kept.get(recipe.name);
    if (!known && !mayAsk) return { problem: NOT_ASKED };
    const kept = known ?? answerTo(model, recipe);
    this.#kept.set(recipe.name, kept);
    let isAnswer = false;
    try {
      const answer = await kept;
      isAnswer = !('problem' in answer);
      return answer;
    } finally {
      if (!isAnswer && this.#kept.get(recipe.name) === kept) this.#kept.delete(recipe.name);
    }
  }
}

function loadProblem(slot: EngineSlot): string {
  try {
    slot.require();
  } catch (error) {
    if (error instanceof HttpFailure) return `There is no answer yet: ${error.message}.`;
  }
  return 'There is no answer yet: look again.';
}

/**
 * Asks the model for the answer to a recipe. The request waits in the queue like any other, but is not counted, because
 * no client has sent it.
 */
async function answerTo({ engine, info, source }: LoadedModel, recipe: Recipe): Promise<RecipeAnswer> {
  const reply = await engine.decide(Buffer.from(recipeText(recipe)));
  if (reply.failure) return { problem: `There is no answer now: ${reply.failure.message}.` };
  const { encodeMs, waitMs, runMs, totalMs } = reply.timing;
  return {
    body: reply.body.toString('utf8'),
    timing: { encode: encodeMs, wait: waitMs, run: runMs, total: totalMs },
    time: new Date().toISOString(),
    model: { name: info.name, version: info.version },
    isEmbedded: source === EMBEDDED,
  };
}
