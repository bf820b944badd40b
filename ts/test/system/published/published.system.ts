import { suite, test } from 'node:test';
import { compareWithOracle, type Oracle } from './oracle.ts';

/** A package may refuse a mask in a text, a number of options, or options without a description. */
const REFUSALS = ['too_many_tokens', 'bad_field'];

/** Every family that is served from the folders of its maker: one line each. */
const FAMILIES: readonly (readonly [what: string, oracle: Oracle])[] = [
  ['Laya, English', { name: 'laya', variant: 'english' }],
  ['Laya, multilingual', { name: 'laya', variant: 'multilingual' }],
  ['GLiNER2.5-Decide', { name: 'gliner_decide' }],
  ['open-jev, a row for each question', { name: 'open_jev', variant: 'apart' }],
  ['open-jev, all questions in a row', { name: 'open_jev', variant: 'packed', answered: 0.7 }],
  ['Julia 1', { name: 'julia' }],
  ['jevhome h2', { name: 'jevhome' }],
  ['OpenDecider nano', { name: 'opendecider' }],
  ['NoulXP, texts cut', { name: 'nxp', variant: 'plain', refusals: REFUSALS }],
  ['NoulXP, strict', { name: 'nxp', variant: 'strict', refusals: REFUSALS, answered: 0.3 }],
  ['NoulXP, other template', { name: 'nxp', variant: 'other', refusals: REFUSALS }],
];

suite('the code of its maker and the engine give the same answers to 300 requests', () => {
  for (const [what, oracle] of FAMILIES) test(what, (t) => compareWithOracle(t, oracle));
});
