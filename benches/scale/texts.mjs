/** Different texts of an exact number of tokens: a server would not read a text again that it has already read. */
import { modelConfig } from '../inputs.mjs';

/** Words that are one token each. The bench fails if one of them is not. */
const THINGS =
  'lamp chair table phone door window engine garden letter bottle camera button mirror pillow wheel basket'.split(' ');
const SIDES =
  'price color size weight age name owner value origin quality shape length safety history future cost'.split(' ');
const OTHERS =
  'the a of and in to was is for on with it we they asked sent came paid never again today before after'.split(' ');

export const QUESTION_TOKENS = 20;

/**
 * Returns `count` different pairs of a side and a thing; once all pairs are used up, the same in the opposite order.
 */
function pairs(count) {
  const all = SIDES.flatMap((side) => THINGS.map((thing) => [side, thing]));
  if (count > 2 * all.length) throw new Error(`there are ${2 * all.length} pairs, not ${count}`);
  return Array.from({ length: count }, (_, index) => {
    const [side, thing] = all[index % all.length];
    return index < all.length ? [side, thing] : [thing, side];
  });
}

/** Returns `count` yes/no questions of `QUESTION_TOKENS` tokens each. */
export function questions(count) {
  const entries = pairs(count).map(([first, second], index) => [
    `q${index}`,
    { type: 'noul', instructions: `did they ever ask us about the ${first} of the ${second} again today?` },
  ]);
  return Object.fromEntries(entries);
}

/** Returns one choice question with `count` options, each with or without a description of eight tokens. */
export function choice(count, isDescribed) {
  const text = 'it was sent to us before today';
  const criteria = pairs(count).map(([first, second]) => [`${first} ${second}`, isDescribed ? text : null]);
  return { q0: { type: 'choice', instructions: 'what is it about?', criteria: Object.fromEntries(criteria) } };
}

/** Returns a text that becomes a state of exactly `tokens` tokens, including the special ones of its chunks. */
export function state(tokens) {
  const { chunk } = modelConfig();
  const words = [...THINGS, ...SIDES, ...OTHERS];
  // The words follow a fixed sequence that does not repeat (Numerical Recipes' generator) and starts from each length.
  let seed = tokens;
  const next = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return words[Math.floor((seed / 2 ** 32) * words.length)];
  };
  return Array.from({ length: tokens - 2 * Math.ceil(tokens / chunk) }, next).join(' ');
}
