import { suite, test } from 'node:test';
import { compareWithOracle, type Oracle } from './oracle.ts';

/** Every family that is served from the folders of its maker: one line each. */
const FAMILIES: readonly (readonly [what: string, oracle: Oracle])[] = [
  ['Laya, English', { name: 'laya', variant: 'english' }],
  ['Laya, multilingual', { name: 'laya', variant: 'multilingual' }],
];

suite('the code of its maker and the engine give the same answers to 300 requests', () => {
  for (const [what, oracle] of FAMILIES) test(what, (t) => compareWithOracle(t, oracle));
});
