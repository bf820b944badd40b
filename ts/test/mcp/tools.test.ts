import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Check } from 'typebox/schema';
import { type Arguments, faultOf, TOOLS, type Tool } from '../../src/mcp/tools.ts';

function tool(name: string): Tool {
  return TOOLS.find((each) => each.name === name) ?? assert.fail(name);
}

/** Returns an answer of the server to a request with one question `q`. */
const answered = (answer: object, usage = {}) =>
  JSON.stringify({ model: 'svc', answers: { q: { confidence: 0.4, answer_confidence: 0.7, ...answer } }, usage });

/** Each tool: arguments, the request that they make, an answer to it, and the result. */
const CASES: readonly (readonly [string, Arguments, string, string, object])[] = [
  [
    'check',
    { state: 'It is "late"\n', statement: 'Is it late?' },
    '{"state":"It is \\"late\\"\\n","questions":{"q":{"type":"noul","instructions":"Is it late?"}}}',
    answered({ type: 'noul', noul: 0.3, probabilities: { false: 0.7, true: 0.3 } }),
    { holds: false, probability: 0.3, confidence: 0.4 },
  ],
  [
    'classify',
    { state: 's', instructions: 'Which?', options: ['b', '10', '9'], descriptions: { 9: 'nine', toString: 'x' } },
    '{"state":"s","questions":{"q":{"type":"choice","instructions":"Which?","criteria":{"b":null,"10":null,"9":"nine"}}}}',
    answered({ type: 'choice', choice: '9', probabilities: { b: 0.1, 10: 0.2, 9: 0.7 } }, { truncated_tokens: 8 }),
    { choice: '9', probabilities: { b: 0.1, 10: 0.2, 9: 0.7 }, confidence: 0.4, truncated_tokens: 8 },
  ],
  [
    'score',
    { state: 's', instructions: 'How?', levels: ['low', 'high', 'low'] },
    '{"state":"s","questions":{"q":{"type":"score","instructions":"How?","criteria":["low","high","low"]}}}',
    answered({ type: 'score', score: 0.9, probabilities: { 0: 0.3, 1: 0.5, 2: 0.2 } }),
    {
      score: 0.9,
      level: 'high',
      levels: [
        { level: 'low', probability: 0.3 },
        { level: 'high', probability: 0.5 },
        { level: 'low', probability: 0.2 },
      ],
      confidence: 0.4,
    },
  ],
  [
    'decide',
    { state: { a: [1, null] }, questions: { z: { type: 'noul', instructions: 'Z?' } } },
    '{"state":{"a":[1,null]},"questions":{"z":{"type":"noul","instructions":"Z?"}}}',
    '{"model":"svc","answers":{"z":{"type":"noul","probabilities":{"true":1},"confidence":1,"answer_confidence":1}},"usage":{"input_tokens":3}}',
    {
      model: 'svc',
      answers: { z: { type: 'noul', probabilities: { true: 1 }, confidence: 1, answer_confidence: 1 } },
      usage: { input_tokens: 3 },
    },
  ],
];

suite('the tools', () => {
  for (const [name, args, request, answer, result] of CASES) {
    test(`${name} makes a request of its arguments and a result of the answer`, () => {
      const { request: requestOf, result: resultOf, outputSchema } = tool(name);
      assert.equal(faultOf(tool(name), args), undefined);
      assert.equal(requestOf(args), request);
      const made = resultOf(answer, args);
      assert.deepEqual(made, result);
      assert.ok(Check(outputSchema, made));
    });
  }

  test('are all tried above, and have schemas of objects without references', () => {
    assert.deepEqual(CASES.map(([name]) => name).sort(), TOOLS.map(({ name }) => name).sort());
    for (const { inputSchema, outputSchema } of TOOLS) {
      for (const schema of [inputSchema, outputSchema]) {
        assert.equal((schema as { type?: string }).type, 'object');
        assert.doesNotMatch(JSON.stringify(schema), /\$ref/);
      }
    }
  });

  for (const [name, args, fault] of [
    ['check', {}, /^the arguments must have required properties state/],
    ['check', { state: 1, statement: 'x' }, /^state must be string/],
    ['classify', { state: '', instructions: '', options: ['a'] }, /^options must not have fewer than 2 items/],
    ['classify', { state: '', instructions: '', options: ['a', 'a'] }, /^options must not have duplicate items/],
    ['score', { state: '', instructions: '', levels: ['a', 2] }, /^levels\.1 must be string/],
    ['decide', { state: '', questions: { q: { type: 'maybe' } } }, /^questions\.q\.type must be equal to one of/],
    ['decide', { state: '', questions: {} }, /^questions must not have fewer than 1 properties/],
  ] as const) {
    test(`${name} says what is wrong with ${JSON.stringify(args)}`, () => {
      assert.match(faultOf(tool(name), args as Arguments) ?? '', fault);
    });
  }
});
