/** The digest that tells models, states and questions apart. */
import { createHash } from 'node:crypto';

/** Returns the sha256 of a text in UTF-8, or of bytes, in lower-case hex. */
export function sha256Of(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
