/** The check before anything is measured: the server's answers must be those of the bare graph. */

/** The largest allowed difference of a probability. The server rounds to six decimals. */
const TOLERANCE = 1e-3;

/**
 * Compares the server's answers with the logits of the bare graph.
 *
 * @throws Error that names the first question on which they differ.
 */
export function requireSameAnswers({ name, rows }, logits, answer, temperature) {
  const { answers, usage } = JSON.parse(answer);
  const tokens = [...rows.state, ...rows.questions.flatMap((question) => question.rows)];
  const wanted = tokens.reduce((total, row) => total + row.ids.length, 0);
  if (usage.input_tokens !== wanted) throw new Error(`${name}: ${usage.input_tokens} tokens instead of ${wanted}`);
  for (const [index, { id, kind, outcomes }] of rows.questions.entries()) {
    const expected = softmax(logits[index].map((logit) => logit / temperature[kind]));
    for (const [position, outcome] of outcomes.entries()) {
      const got = answers[id]?.probabilities[outcome];
      // The comparison is written so that NaN also fails.
      if (!(Math.abs(got - expected[position]) <= TOLERANCE)) {
        throw new Error(`${name}: ${id}: ${outcome} is ${got}, the graph says ${expected[position]}`);
      }
    }
  }
}

function softmax(values) {
  const maximum = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - maximum));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
