import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { answersText, startEngine, textOf } from './model-folders.ts';

/** Returns requests of one to nine questions about states of some to a few hundred words, some of them twice. */
function requests(): string[] {
  const words = 'the customer says that a card was charged twice and asks for money back today'.split(' ');
  return Array.from({ length: 30 }, (_, index) => {
    const about = index % 20;
    const length = about % 5 === 0 ? 400 : 10 + 3 * about;
    const state = Array.from({ length }, (_, at) => words[(at * 7 + about * at + about) % words.length]).join(' ');
    const questions = Array.from({ length: 1 + (index % 9) }, (_, number) => [
      `q${number}`,
      { type: 'noul', instructions: `Is it about ${words[(index + number) % words.length]}?` },
    ]);
    return JSON.stringify({ state, questions: Object.fromEntries(questions) });
  });
}

suite('requests side by side', () => {
  test('have the bits of requests one by one, with and without kept states', async (t) => {
    const bodies = requests().map((text) => Buffer.from(text));
    const alone = await startEngine(t, { threads: 1 });
    const expected: string[] = [];
    for (const body of bodies) expected.push(answersText(textOf(await alone.decide(body))));
    for (const changes of [{ parallel: 0 }, { parallel: 2, stateCacheBytes: 2 ** 26 }, { threads: 5, parallel: 3 }]) {
      const engine = await startEngine(t, changes);
      const replies = await Promise.all(bodies.map((body) => engine.decide(body)));
      assert.deepEqual(
        replies.map((reply) => answersText(textOf(reply))),
        expected,
      );
    }
  });

  test('about one new state prefill it once', async (t) => {
    const engine = await startEngine(t, { threads: 2, parallel: 2, stateCacheBytes: 2 ** 26 });
    const state = Array.from({ length: 150 }, (_, at) => `word ${at}`).join(' ');
    const questions = { q: { type: 'noul', instructions: 'Is it about words?' } };
    const body = Buffer.from(JSON.stringify({ state, questions }));
    const replies = await Promise.all(Array.from({ length: 8 }, () => engine.decide(body)));
    assert.equal(new Set(replies.map((reply) => answersText(textOf(reply)))).size, 1);
    const { hits, misses } = engine.cache();
    assert.equal(hits, 7 * misses);
  });
});
