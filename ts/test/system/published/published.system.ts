import { suite, test } from 'node:test';
import { compareWithOracle, type Oracle } from './oracle.ts';

/** Every family that is served from the folders of its maker: one line each. */
const FAMILIES: readonly (readonly [what: string, oracle: Oracle])[] = [
  ['Laya, English', { name: 'laya', variant: 'english' }],
  ['Laya, multilingual', { name: 'laya', variant: 'multilingual' }],
  ['Laya in two graphs, with weights beside them', { name: 'laya_split', variant: 'q8' }],
  ['Laya in two graphs', { name: 'laya_split', variant: 'plain' }],
  ['jevhome E', { name: 'jevhome_e' }],
  ['Decima that reads a state once', { name: 'decima_folder', variant: 'read-once' }],
  ['Decima that reads a state with each question', { name: 'decima_folder', variant: 'with-question' }],
  ['Decima with options alone', { name: 'decima_folder', variant: 'bare' }],
];

suite('the code of its maker and the engine give the same answers to 300 requests', () => {
  for (const [what, oracle] of FAMILIES) test(what, (t) => compareWithOracle(t, oracle));
});
