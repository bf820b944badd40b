import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import type { Engine } from '../../src/engine/contract.ts';
import { answersText, copyOfFixture, type Fixture, fixture, startEngine, textOf } from './model-folders.ts';
import { differentRequest, manyQuestions } from './requests.ts';

/** The most bytes of untaken results that the engine holds for a batch; beyond them, no more states go to the model. */
const MOST_HELD_BYTES = 2 ** 20;

const answer = async (engine: Engine, body: string) => answersText(textOf(await engine.decide(Buffer.from(body))));

/** Returns the answer of a model that is the only one in its engine. */
async function alone(t: Parameters<typeof startEngine>[0], name: Fixture, body: string): Promise<string> {
  return answer(await startEngine(t, { model: fixture(name) }), body);
}

suite('an engine whose model is swapped', () => {
  test('answers as the new model, and says that it is it', async (t) => {
    const body = differentRequest(1);
    const engine = await startEngine(t, { model: fixture('shared-state'), stateCacheBytes: 2 ** 20 });
    assert.equal(await answer(engine, body), await alone(t, 'shared-state', body));
    assert.notEqual(engine.cache().entries, 0);
    for (const name of ['marker', 'pair-bert', 'shared-state-int8'] as const) {
      await engine.swap(fixture(name));
      assert.deepEqual([engine.info().dir, engine.cache().entries], [fixture(name), 0]);
      assert.equal(await answer(engine, body), await alone(t, name, body));
    }
  });

  test('answers what came before the swap as the model of then, in the line and on the model', async (t) => {
    const bodies = Array.from({ length: 20 }, (_, n) => (n === 0 ? manyQuestions(200) : differentRequest(n)));
    const [before, after] = [await startEngine(t, { model: fixture('marker') }), fixture('shared-state')];
    const expected = await Promise.all(bodies.map((body) => answer(before, body)));
    const engine = await startEngine(t, { model: fixture('marker') });
    const swapped = engine.swap(after);
    // The switch happens between two turns of this thread, so all of these requests come before it.
    const answers = bodies.map((body) => answer(engine, body));
    await swapped;
    const last = await answer(engine, differentRequest(1));
    assert.deepEqual(await Promise.all(answers), expected);
    assert.equal(last, await alone(t, 'shared-state', differentRequest(1)));
  });

  test('answers all states of a batch as one model, those too that come to it after the swap', async (t) => {
    // Long names make long results, so the engine has only a part of them ready before the caller takes any.
    const names = ['no', 'yes'].map((name) => name.padEnd(4096, '.'));
    const question = { type: 'choice', instructions: 'Is it?', criteria: names };
    const states = Array.from({ length: 600 }, (_, n) => `state ${n}`);
    const body = Buffer.from(JSON.stringify({ states, questions: { q: question } }));
    const begin = (engine: Engine) => engine.batch(body, { maxStates: 1000, lines: true });
    const rest = async (batch: ReturnType<typeof begin>) => {
      let text = '';
      for await (const { body: piece, failure } of batch) {
        assert.equal(failure, undefined);
        text += piece.toString('utf8');
      }
      return text.replaceAll(/"server_ms":[\d.]+/g, '');
    };
    const expected = await rest(begin(await startEngine(t, { model: fixture('marker') })));
    const engine = await startEngine(t, { model: fixture('marker') });
    const batch = begin(engine);
    const first = await batch.next();
    const early = first.done ? '' : first.value.body.toString('utf8');
    await engine.swap(fixture('shared-state'));
    assert.equal(engine.info().dir, fixture('shared-state'));
    assert.ok(expected.length - early.length > 3 * MOST_HELD_BYTES, `${early.length} of ${expected.length}`);
    assert.equal(early.replaceAll(/"server_ms":[\d.]+/g, '') + (await rest(batch)), expected);
    assert.notEqual(await rest(begin(engine)), expected);
  });

  test('goes on with its model when the other cannot be loaded', async (t) => {
    const broken = copyOfFixture(t, 'shared-state');
    rmSync(join(broken, 'tokenizer.json'));
    const engine = await startEngine(t, { model: fixture('marker') });
    const [info, before] = [engine.info(), await answer(engine, differentRequest(1))];
    await assert.rejects(engine.swap(broken), { code: 'bad_model', message: /tokenizer\.json/ });
    assert.deepEqual(engine.info(), info);
    assert.equal(await answer(engine, differentRequest(1)), before);
  });

  test('closes in the middle of a swap', async (t) => {
    const engine = await startEngine(t, { model: fixture('marker') });
    const swapped = engine.swap(fixture('shared-state')).then(
      () => 'swapped',
      (error: unknown) => (error as { code?: string }).code,
    );
    const answers = Array.from({ length: 5 }, (_, n) => answer(engine, differentRequest(n)));
    await engine.close();
    assert.equal((await Promise.all(answers)).length, 5);
    assert.match(String(await swapped), /^(swapped|closing)$/);
    await assert.rejects(engine.swap(fixture('marker')), { code: 'closing' });
  });

  test('takes no model any more that was loaded when it was shut down', async (t) => {
    const engine = await startEngine(t, { model: fixture('marker') });
    const before = engine.info();
    const swapped = engine.swap(fixture('shared-state'));
    // The model loads during this wait; the switch cannot happen before this thread is free.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
    engine.shutdown();
    await assert.rejects(swapped, { code: 'closing' });
    assert.deepEqual(engine.info(), before);
  });
});
