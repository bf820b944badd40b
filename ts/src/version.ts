import { readFileSync } from 'node:fs';
import { DIST } from './dist.ts';

/** The version of the server, as `package.json` has it. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', DIST), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
