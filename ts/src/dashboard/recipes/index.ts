/** All recipes, in the order of the list. */
import { CUSTOMERS } from './customers.ts';
import { OPERATIONS } from './operations.ts';
import type { Recipe } from './recipe.ts';
import { SAFETY } from './safety.ts';
import { TEXTS } from './texts.ts';

export const RECIPES: readonly Recipe[] = [...CUSTOMERS, ...SAFETY, ...OPERATIONS, ...TEXTS];
