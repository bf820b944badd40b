import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { copyOfFixture, type Fixture, fixture, startEngine, textOf } from './model-folders.ts';

const STATE = 'The customer was charged twice and nobody answers the phone.';

/** Returns an engine on a copy of a tiny cross-encoder whose config.json also says `changes`. */
async function engineWith(t: TestContext, name: Fixture, changes: Readonly<Record<string, unknown>>) {
  const folder = copyOfFixture(t, name);
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...changes }));
  const engine = await startEngine(t, { model: folder });
  const ask = async (question: object, state = STATE) => {
    const reply = await engine.decide(Buffer.from(JSON.stringify({ state, questions: { q: question } })));
    const { answers, usage } = JSON.parse(textOf(reply));
    return { ...answers.q, usage };
  };
  return { engine, folder, ask };
}

const NOUL = { type: 'noul', instructions: 'Is this urgent?' };
const CHOICE = { type: 'choice', instructions: 'Which team?', criteria: ['billing', 'sales', 'support'] };

suite('an exported cross-encoder', () => {
  test('is one of the layout pair by what its makers wrote, and is called by its folder', async (t) => {
    const { engine, folder } = await engineWith(t, 'pair-deberta', {});
    const { layout, name, version } = engine.info();
    assert.deepEqual([layout, name, version], ['pair', basename(folder), '0']);
  });

  test('keeps the name, the version and the temperatures that its config.json gives', async (t) => {
    const own = { name: 'mine', version: '7', temperature: { choice: 1, score: 1, noul: 1000 } };
    const { engine, ask } = await engineWith(t, 'pair-bert', own);
    assert.deepEqual([engine.info().name, engine.info().version], ['mine', '7']);
    const { confidence } = await ask(NOUL);
    assert.ok(confidence < 0.01, `${confidence}`);
  });

  test('gives the probability of true as entailment against contradiction, whatever the labels are called', async (t) => {
    const named = await engineWith(t, 'pair-bert', {});
    const other = await engineWith(t, 'pair-bert', {
      id2label: { 0: 'LABEL_0', 1: 'LABEL_1', 2: 'LABEL_2' },
      entailment: 'LABEL_0',
      contradiction: 'LABEL_2',
    });
    const turned = await engineWith(t, 'pair-bert', { entailment: 'contradiction', contradiction: 'entailment' });
    const { noul } = await named.ask(NOUL);
    assert.equal((await other.ask(NOUL)).noul, noul);
    assert.ok(Math.abs((await turned.ask(NOUL)).noul - (1 - noul)) < 1e-6);
  });

  test('reads a row for true, and one for false only where the criteria say what it means', async (t) => {
    const { ask } = await engineWith(t, 'pair-bert', {});
    const tokens = async (criteria: object | null) => (await ask({ ...NOUL, criteria })).usage.input_tokens;
    const one = await tokens(null);
    assert.equal(await tokens({ false: '' }), one);
    assert.equal(await tokens({ true: 'late' }), one + 2);
    assert.equal(await tokens({ false: 'late' }), 2 * one + 2);
  });

  test('gives an option the same logit whatever the others are', async (t) => {
    const { ask } = await engineWith(t, 'pair-deberta', {});
    const few = (await ask(CHOICE)).probabilities;
    const many = (await ask({ ...CHOICE, criteria: ['tech', 'support', 'billing', 'returns', 'sales'] })).probabilities;
    const ratio = ({ billing = 0, sales = 0 }: Record<string, number>) => billing / sales;
    assert.ok(Math.abs(ratio(few) / ratio(many) - 1) < 1e-4);
  });

  test('cuts the state before the hypothesis, and never the option', async (t) => {
    const { ask } = await engineWith(t, 'pair-bert', {});
    const long = await ask(CHOICE, 'late '.repeat(100));
    // Of the 64 tokens of each row, three are special, three are the instructions' and one is the option's.
    assert.equal(long.usage.input_tokens, 3 * 64);
    assert.equal(long.usage.truncated_tokens, 100 - (64 - 3 - 4));
    const wordy = await ask({ ...CHOICE, instructions: 'late '.repeat(100) });
    // The hypothesis takes half of a row, and all of its tokens except the option's are the instructions'.
    assert.equal(wordy.usage.truncated_tokens, 100 - 31);
    assert.equal(new Set(Object.values(wordy.probabilities)).size, 3);
  });

  test('reads long instructions once for all of 255 options', async (t) => {
    const engine = await startEngine(t, { model: fixture('pair-bert'), maxTokens: 131_072 });
    const criteria = Array.from({ length: 255 }, (_, index) => `option ${index}`);
    const question = { type: 'choice', instructions: 'late '.repeat(600), criteria };
    const request = { state: 'late '.repeat(600), questions: { q: question } };
    const { answers, usage } = JSON.parse(textOf(await engine.decide(Buffer.from(JSON.stringify(request)))));
    assert.equal(Object.keys(answers.q.probabilities).length, 255);
    assert.equal(usage.input_tokens, 255 * 64);
  });

  test('reads the hypothesis first where its config.json says so', async (t) => {
    const [state, hypothesis] = await Promise.all(
      ['state', 'hypothesis'].map((first) => engineWith(t, 'pair-reranker', { first })),
    );
    assert.notDeepEqual((await state?.ask(CHOICE))?.probabilities, (await hypothesis?.ask(CHOICE))?.probabilities);
  });

  test('takes special tokens in a text for text, also those that its vocabulary holds as pieces', async (t) => {
    const { ask } = await engineWith(t, 'pair-deberta', {});
    const tokens = async (state: string) => (await ask(NOUL, state)).usage.input_tokens;
    const [none, one] = [await tokens('late'), await tokens('late [SEP]')];
    assert.ok(one - none > 1, `${one} - ${none}`);
  });
});
