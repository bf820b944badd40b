/** The requests that are measured, with the rows of tokens that the engine makes of them. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join('benches', 'inputs');

export const MODEL = join('models', 'svc-small');

/** Returns the embedded model's `config.json`. */
export function modelConfig() {
  return JSON.parse(readFileSync(join(MODEL, 'config.json'), 'utf8'));
}

/**
 * Returns the inputs, the shortest state first: `{name, stateTokens, questions, body, rows}`.
 *
 * @throws Error when they were made for another model than the one that is there.
 */
export function readInputs() {
  const sha256 = createHash('sha256')
    .update(readFileSync(join(MODEL, 'model.onnx')))
    .digest('hex');
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));
  const inputs = files.map((file) => {
    const input = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'));
    if (input.model.sha256 !== sha256)
      throw new Error(`${file} was made for another model: node benches/inputs/make.mjs`);
    return { name: `${input.stateTokens} tokens, ${input.questions} questions`, ...input };
  });
  return inputs.sort((a, b) => a.stateTokens - b.stateTokens || a.questions - b.questions);
}
