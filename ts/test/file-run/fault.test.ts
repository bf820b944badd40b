import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { askedQuestions } from '../../src/file-run/asked.ts';
import { faultIn } from '../../src/file-run/fault.ts';
import { answerTo } from './fake-server.ts';
import { QUESTIONS } from './run-files.ts';

const ASKED = askedQuestions(QUESTIONS);
const GOOD = answerTo(`{"state":"x","questions":${QUESTIONS}}`);

/** An answer of which one place is changed. */
type Changed = Record<string, Record<string, Record<string, unknown>>>;

function changed(change: (body: Changed) => void): string {
  const body = JSON.parse(GOOD);
  change(body);
  return JSON.stringify(body);
}

const answer = (id: string, fields: object) =>
  changed(({ answers }) => Object.assign(answers?.[id] ?? assert.fail(), fields));

suite('what was asked', () => {
  test('has the names of the options as they are spelled, in their order', () => {
    assert.deepEqual(
      ASKED.map(({ id, type, labels }) => [id, type, ...labels]),
      [
        ['refund', 'noul', 'false', 'true'],
        ['team', 'choice', '10', '9'],
        ['anger', 'score', '0', '1'],
      ],
    );
    const [list, levels] = askedQuestions(
      '{"a":{"type":"choice","criteria":["x","y"]},"b":{"type":"score","criteria":[null,{"c":1}]}}',
    );
    assert.deepEqual(list?.labels, ['x', 'y']);
    assert.deepEqual(levels?.legend, ['0', { c: 1 }]);
  });
});

suite('an answer', () => {
  test('to the questions that were asked has no fault, whatever the order and the spaces', () => {
    assert.equal(faultIn(GOOD, ASKED), undefined);
    assert.equal(faultIn(JSON.stringify(JSON.parse(GOOD), null, 2), ASKED), undefined);
    const action = { action: { act_probability: 0.25 } };
    assert.equal(faultIn(answer('refund', action), ASKED), undefined);
    const { answers, usage } = JSON.parse(GOOD);
    const turned = Object.fromEntries(Object.entries(answers).reverse());
    assert.equal(faultIn(JSON.stringify({ usage, answers: turned }), ASKED), undefined);
  });

  for (const [body, fault] of [
    ['', 'no JSON'],
    ['<html>we are back soon</html>', 'no JSON'],
    [GOOD.slice(0, -5), 'no JSON'],
    [GOOD.replace('0.75', 'NaN'), 'no JSON'],
    [GOOD.replace('0.75', '// \n0.75'), 'no JSON'],
    ['[]', 'no decision'],
    ['null', 'no decision'],
    ['{"answers":[]}', 'no decision'],
    [changed(({ answers }) => Reflect.deleteProperty(answers ?? {}, 'team')), 'no answer to "team"'],
    [GOOD.replace('"team":', '"other":'), 'no answer to "team"'],
    [GOOD.replace('"answers":{', '"answers":{"other":{},'), 'an answer to "other", which was not asked'],
    [GOOD.replace('"answers":{', '"answers":{"team":{},'), 'two answers to one question'],
    [changed(({ answers }) => Object.assign(answers ?? {}, { team: null })), 'an answer to "team" that is no object'],
    [answer('team', { type: 'noul' }), 'an answer to "team" that is not of type choice'],
    [answer('team', { probabilities: null }), 'an answer to "team" with probabilities of other options'],
    [answer('team', { probabilities: { 10: 1 } }), 'an answer to "team" with probabilities of other options'],
    [
      answer('team', { probabilities: { 9: 0.25, 10: 0.75, 11: 0 } }),
      'an answer to "team" with probabilities of other options',
    ],
    [
      answer('team', { probabilities: { 9: '0.25', 10: 0.75 } }),
      'an answer to "team" with probabilities that are none',
    ],
    [answer('team', { probabilities: { 9: -0.5, 10: 1.5 } }), 'an answer to "team" with probabilities that are none'],
    [GOOD.replace('0.75', '1e999'), 'an answer to "refund" with probabilities that are none'],
    [
      answer('team', { probabilities: { 9: 0.2, 10: 0.7 } }),
      'an answer to "team" with probabilities that do not add up to 1',
    ],
    [answer('team', { confidence: null }), 'an answer to "team" with a confidence that is none'],
    [answer('team', { answer_confidence: 0.25 }), 'an answer to "team" with a confidence that is none'],
    [answer('team', { choice: '9' }), 'an answer to "team" that does not fit its probabilities'],
    [answer('team', { choice: 10 }), 'an answer to "team" that does not fit its probabilities'],
    [answer('refund', { noul: 0.75 }), 'an answer to "refund" that does not fit its probabilities'],
    [answer('refund', { noul: '0.25' }), 'an answer to "refund" that does not fit its probabilities'],
    [answer('anger', { score: 1 }), 'an answer to "anger" that does not fit its probabilities'],
    [answer('anger', { legend: { 0: 'calm', 1: 'wild' } }), 'an answer to "anger" that does not fit its probabilities'],
    [answer('anger', { action: { act_probability: 'yes' } }), 'an answer to "anger" with an action that is none'],
    [changed((each) => Reflect.deleteProperty(each, 'usage')), 'no usage'],
    [changed(({ usage }) => Object.assign(usage ?? {}, { input_tokens: 1.5 })), 'no usage'],
    [changed(({ usage }) => Object.assign(usage ?? {}, { truncated_tokens: 'all' })), 'no usage'],
  ] as const) {
    test(`is none: ${fault}: ${body.slice(0, 300)}`, () => {
      assert.equal(faultIn(body, ASKED), fault);
    });
  }
});
