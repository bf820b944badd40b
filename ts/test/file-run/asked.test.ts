import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { askedQuestions } from '../../src/file-run/asked.ts';

suite('the labels of an asked question', () => {
  for (const [what, json, labels, legend] of [
    ['yes or no', '{"type":"noul"}', ['false', 'true'], []],
    ['a list of options', '{"type":"choice","criteria":["b","a",7]}', ['b', 'a', '7'], []],
    ['options with descriptions, in their order', '{"type":"choice","criteria":{"10":"x","9":"y"}}', ['10', '9'], []],
    ['levels', '{"type":"score","criteria":["calm",null,"angry"]}', ['0', '1', '2'], ['calm', '1', 'angry']],
    ['a choice without criteria', '{"type":"choice"}', [], []],
    ['a score without criteria', '{"type":"score"}', [], []],
    ['a score whose criteria are no list', '{"type":"score","criteria":{"calm":"x"}}', [], []],
    ['a type that is none', '{"type":"other","criteria":["a"]}', [], []],
  ] as const) {
    test(`are those of ${what}`, () => {
      const [question] = askedQuestions(`{"q":${json}}`);
      assert.deepEqual({ labels: question?.labels, legend: question?.legend }, { labels, legend });
    });
  }
});
