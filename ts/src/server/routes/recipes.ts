/**
 * `GET /recipes` and `GET /recipes/<name>`: example decisions to start from, with the loaded model's own answers. Only
 * for the operator.
 */
import type { Middleware } from 'koa';
import { recipeListPage, recipePage } from '../../dashboard/recipe-pages.ts';
import { RECIPES } from '../../dashboard/recipes/index.ts';
import { HttpFailure } from '../../errors.ts';
import type { EngineSlot } from '../../model/slot.ts';
import type { Address } from '../../network/address.ts';
import type { Assets } from '../assets.ts';
import type { RequestContext, RequestState } from '../middleware/request.ts';
import { RecipeAnswers } from '../recipe-answers.ts';
import { answerPage, originOf } from './pages.ts';

interface RecipeParts {
  readonly listen: Address;
  readonly assets: Assets;
  readonly slot: EngineSlot;
  readonly hasApiKey: boolean;
  /** The guard of calls that use the engine. */
  readonly action: Middleware<RequestState>;
}

export function listRecipes({ assets }: Pick<RecipeParts, 'assets'>): Middleware<RequestState> {
  return (ctx) => answerPage(ctx, recipeListPage(assets.paths));
}

export function showRecipe({ listen, assets, slot, hasApiKey, action }: RecipeParts): Middleware<RequestState> {
  const recipes = new Map(RECIPES.map((recipe) => [`/recipes/${recipe.name}`, recipe]));
  const answers = new RecipeAnswers(slot);
  return async (ctx) => {
    const recipe = recipes.get(ctx.path);
    if (!recipe) throw new HttpFailure('not_found', 'not found');
    const answer = await answers.get(recipe, await isLetThrough(action, ctx));
    const origin = originOf(ctx, listen);
    answerPage(ctx, recipePage({ recipe, answer, assets: assets.paths, origin, needsKey: hasApiKey }));
  };
}

/** Whether `middleware` lets a request pass. */
async function isLetThrough(middleware: Middleware<RequestState>, ctx: RequestContext): Promise<boolean> {
  let passed = false;
  try {
    await middleware(ctx, async () => {
      passed = true;
    });
  } catch (error) {
    if (!(error instanceof HttpFailure)) throw error;
  }
  return passed;
}
