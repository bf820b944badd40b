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

/** A request with `count` questions about one short state: as many runs of the model. */
export function manyQuestions(count: number, state = 'The parcel arrived crushed.'): string {
  const ids = Array.from({ length: count }, (_, index) => `q${index}`);
  const questions = ids.map((id) => [id, { type: 'noul', instructions: `Is it about parcel number ${id}?` }] as const);
  return JSON.stringify({ state, questions: Object.fromEntries(questions) });
}
