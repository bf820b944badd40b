/** The requests that are measured, with the rows of tokens that the engine makes from them. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join('benches', 'inputs');

export const MODEL = join('models', 'svc-small');

/** Returns the embedded model's `config.json`. */
export function modelConfig() {
  return JSON.parse(readFileSync(join(MODEL, 'config.json'), 'utf8'));
}

/** The numbers of questions that are measured; each request has the first ones of the same sixteen. */
export const QUESTION_COUNTS = [1, 2, 4, 8, 16];

/**
 * Returns the inputs, the shortest state first: `{name, stateTokens, questions, body, rows}`.
 *
 * @throws Error if they were made for another model than the present one.
 */
export function readInputs() {
  const sha256 = createHash('sha256')
    .update(readFileSync(join(MODEL, 'model.onnx')))
    .digest('hex');
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('-questions-16.json'));
  const inputs = files.flatMap((file) => {
    const input = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
    if (input.model.sha256 !== sha256)
      throw new Error(`${file} was made for another model: node benches/inputs/make.mjs`);
    return QUESTION_COUNTS.map((questions) => first(questions, input));
  });
  return inputs.sort((a, b) => a.stateTokens - b.stateTokens || a.questions - b.questions);
}

/** Returns the same input with only its first questions. */
function first(questions, { stateTokens, body, rows }) {
  const whole = JSON.parse(body);
  const some = Object.fromEntries(Object.entries(whole.questions).slice(0, questions));
  return {
    name: `${stateTokens} tokens, ${questions} questions`,
    stateTokens,
    questions,
    body: JSON.stringify({ state: whole.state, questions: some }),
    rows: { state: rows.state, questions: rows.questions.slice(0, questions) },
  };
}

/** Returns an input's request about another state of as many tokens: the same words in another order. */
export function withNewState({ body }) {
  const { state, questions } = JSON.parse(body);
  const words = state.split(/\s+/);
  for (let last = words.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [words[last], words[other]] = [words[other], words[last]];
  }
  return JSON.stringify({ state: words.join(' '), questions });
}
