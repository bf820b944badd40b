import { suite, test } from 'node:test';
import { compareWithOracle, type Oracle } from './oracle.ts';

/** Every family that is served from the folders of its maker: one line each. */
const FAMILIES: readonly (readonly [what: string, oracle: Oracle])[] = [
  ['Laya, English', { name: 'laya', variant: 'english' }],
  ['Laya, multilingual', { name: 'laya', variant: 'multilingual' }],
  ['GLiNER2.5-Decide', { name: 'gliner_decide' }],
  ['open-jev, a row for each question', { name: 'open_jev', variant: 'apart' }],
  ['open-jev, all questions in a row', { name: 'open_jev', variant: 'packed', answered: 0.7 }],
];

suite('the code of its maker and the engine give the same answers to 300 requests', () => {
  for (const [what, oracle] of FAMILIES) test(what, (t) => compareWithOracle(t, oracle));
});
