/** The reference answers of a model whose questions get a calibration: those about them no longer hold. */
import { canonicalQuestions } from '../engine/addon.ts';
import { memberText } from '../files/json-member.ts';
import { sha256Of } from '../files/sha256.ts';

/** Returns the text of a `golden.jsonl` without the lines that ask a question with one of these keys. */
export function linesWithout(text: string, keys: ReadonlySet<string>): string {
  return text
    .split('\n')
    .filter((line) => line.trim() === '' || !questionKeys(line).some((key) => keys.has(key)))
    .join('\n');
}

/** Returns the keys of the questions that a line asks; an empty list if it is no request that can be answered. */
function questionKeys(line: string): string[] {
  try {
    const { body } = JSON.parse(line);
    const request: string = typeof body === 'string' ? body : (memberText(line, 'request') ?? '');
    return canonicalQuestions(Buffer.from(request)).map(({ canonical }) => sha256Of(canonical));
  } catch {
    return [];
  }
}
