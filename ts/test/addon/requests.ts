/** Decision requests that tests on a real model ask. */

/** A short request with one question of each type. */
export const THREE_TYPES = JSON.stringify({
  state: 'I was charged twice and nobody answers',
  questions: {
    refund: { type: 'noul', instructions: 'Does the customer want money back?' },
    team: {
      type: 'choice',
      instructions: 'Which team should handle this?',
      criteria: { billing: 'payments, invoices', tech: 'bugs, outages', sales: 'pricing' },
    },
    anger: { type: 'score', instructions: 'How angry is the customer?', criteria: ['calm', 'annoyed', 'furious'] },
  },
});

/** Returns a request with `count` questions about one short state; it takes `count` runs of the model. */
export function manyQuestions(count: number, state = 'The parcel arrived crushed.'): string {
  const ids = Array.from({ length: count }, (_, index) => `q${index}`);
  const questions = ids.map((id) => [id, { type: 'noul', instructions: `Is it about parcel number ${id}?` }] as const);
  return JSON.stringify({ state, questions: Object.fromEntries(questions) });
}

const WORDS = ['order', 'late', 'refund', 'phone', 'card', 'twice', 'angry', 'price', 'outage', 'invoice', '17', 'é'];

/** Returns request number `n`, which differs from every other: states, questions and options have all sizes. */
export function differentRequest(n: number): string {
  const word = (at: number) => WORDS[(n * 7 + at * 5) % WORDS.length];
  const words = (count: number) => Array.from({ length: count }, (_, at) => word(at)).join(' ');
  const options = Array.from({ length: 2 + (n % 5) }, (_, at) => [`${word(at)} ${at}`, n % 2 ? words(at) : null]);
  const questions = {
    choice: { type: 'choice', instructions: words(n % 9), criteria: Object.fromEntries(options) },
    score: { type: 'score', instructions: `${n}`, criteria: options.map(([name]) => name) },
    noul: { type: 'noul', instructions: `Is it ${word(3)}?` },
  };
  const some = Object.entries(questions).filter((_, at) => n % 4 === 3 || at === n % 4);
  return JSON.stringify({ state: `${n} ${words(n % 60)}`, questions: Object.fromEntries(some) });
}
