import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { expectTypeOf } from 'expect-type';
import {
  type ChoiceAnswer,
  createEngine,
  type Decision,
  type NoulAnswer,
  type Question,
  type Questions,
  type ScoreAnswer,
} from '../../src/in-process/index.ts';
import { fixture } from '../addon/model-folders.ts';

const engine = await createEngine({ model: fixture('marker'), device: 'cpu', threads: 1 });
after(() => engine.close());

suite('the answers are typed by the literal questions', () => {
  test('a choice by its option names', async () => {
    const { answers } = await engine.decide({
      state: 'The parcel arrived crushed.',
      questions: {
        team: {
          type: 'choice',
          instructions: 'Which team?',
          criteria: { billing: 'invoices', tech: null, 7: 'seven' },
        },
        listed: { type: 'choice', criteria: ['a', 'b c'] },
      },
    });
    expectTypeOf(answers.team.choice).toEqualTypeOf<'billing' | 'tech' | '7'>();
    expectTypeOf(answers.team.probabilities).toEqualTypeOf<Readonly<Record<'billing' | 'tech' | '7', number>>>();
    expectTypeOf(answers.listed.choice).toEqualTypeOf<'a' | 'b c'>();
    expectTypeOf(answers.listed.probabilities['b c']).toEqualTypeOf<number>();
    // @ts-expect-error there is no such option
    assert.equal(answers.team.probabilities.sales, undefined);
    // @ts-expect-error there is no such question
    assert.equal(answers.anger, undefined);
    // @ts-expect-error a choice has no score
    assert.equal(answers.team.score, undefined);
    assert.deepEqual(Object.keys(answers.team.probabilities).sort(), ['7', 'billing', 'tech']);
    assert.deepEqual(Object.keys(answers.listed.probabilities), ['a', 'b c']);
  });

  test('a score by its levels', async () => {
    const { answers, usage } = await engine.decide({
      state: { from: 'a customer', tags: [1, null] },
      questions: { anger: { type: 'score', criteria: ['calm', null, { text: 'furious' }] } },
    });
    expectTypeOf(answers.anger.score).toEqualTypeOf<number>();
    expectTypeOf(answers.anger.probabilities).toEqualTypeOf<Readonly<Record<'0' | '1' | '2', number>>>();
    expectTypeOf(answers.anger.legend['0']).toEqualTypeOf<'calm'>();
    expectTypeOf(answers.anger.legend['1']).toEqualTypeOf<'1'>();
    expectTypeOf(answers.anger.legend['2']).toEqualTypeOf<{ readonly text: 'furious' }>();
    expectTypeOf(usage.truncated_tokens).toEqualTypeOf<number | undefined>();
    // @ts-expect-error there is no such level
    assert.equal(answers.anger.legend['3'], undefined);
    assert.deepEqual(answers.anger.legend, { 0: 'calm', 1: '1', 2: { text: 'furious' } });
    assert.deepEqual(Object.keys(answers.anger.probabilities), ['0', '1', '2']);
  });

  test('yes or no by nothing more', async () => {
    const { answers, model } = await engine.decide({
      state: 17,
      questions: { refund: { type: 'noul', instructions: 'Money back?', criteria: { true: 'it is asked for' } } },
    });
    expectTypeOf(answers.refund).toEqualTypeOf<NoulAnswer>();
    expectTypeOf(model).toEqualTypeOf<'svc'>();
    // @ts-expect-error yes or no has no choice
    assert.equal(answers.refund.choice, undefined);
    assert.equal(answers.refund.noul, answers.refund.probabilities.true);
    assert.equal(model, 'svc');
  });

  test('questions that are made at run time by what is known of them', async () => {
    const options: string[] = ['a', 'b'];
    const levels: string[] = ['low', 'high'];
    const { answers } = await engine.decide({
      state: [],
      questions: { choice: { type: 'choice', criteria: options }, score: { type: 'score', criteria: levels } },
    });
    expectTypeOf(answers.choice.choice).toEqualTypeOf<string>();
    expectTypeOf(answers.score.probabilities).toEqualTypeOf<Readonly<Record<`${number}`, number>>>();
    expectTypeOf(answers.score.legend).toEqualTypeOf<Readonly<Record<`${number}`, string>>>();
    const id: string = 'any';
    const questions: Questions = { [id]: { type: 'noul' } as Question };
    const decision = await engine.decide({ state: null, questions });
    expectTypeOf(decision).toEqualTypeOf<Decision<Questions>>();
    expectTypeOf(decision.answers).toEqualTypeOf<{
      readonly [id: string]: NoulAnswer | ChoiceAnswer<string> | ScoreAnswer;
    }>();
    const any = decision.answers[id];
    // The type of an answer tells which fields it has.
    assert.ok(any?.type === 'noul' && any.noul >= 0);
    assert.equal(answers.score.legend['1'], 'high');
    assert.ok(options.includes(answers.choice.choice));
  });
});

suite('what the types refuse is refused when it runs, too', () => {
  const state = 'x';
  test('a question without its criteria', async () => {
    // @ts-expect-error criteria are missing
    await assert.rejects(engine.decide({ state, questions: { q: { type: 'choice' } } }), /^DecisionError: q: missing/);
  });

  test('an unknown type', async () => {
    // @ts-expect-error there is no such type
    await assert.rejects(engine.decide({ state, questions: { q: { type: 'multi' } } }), /unknown type "multi"/);
  });

  test('instructions that are a number', async () => {
    // @ts-expect-error a number is no text
    const asked = engine.decide({ state, questions: { q: { type: 'noul', instructions: 7 } } });
    await assert.rejects(asked, /q: instructions must be text/);
  });

  test('levels by name', async () => {
    // @ts-expect-error levels are a list
    const asked = engine.decide({ state, questions: { q: { type: 'score', criteria: { low: '', high: '' } } } });
    await assert.rejects(asked, /q: criteria must be a list/);
  });

  test('a state that is undefined, or not there', async () => {
    const questions = { q: { type: 'noul' } } as const;
    // @ts-expect-error undefined is no JSON value
    await assert.rejects(engine.decide({ state: undefined, questions }), /state missing/);
    // @ts-expect-error there is no state
    await assert.rejects(engine.decide({ questions }), /state missing/);
  });

  test('no questions', async () => {
    // @ts-expect-error there are no questions
    await assert.rejects(engine.decide({ state }), /questions missing/);
  });
});
