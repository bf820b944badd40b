import { readFileSync } from 'node:fs';
import { DIST } from './dist.ts';

/** Returns the version of the server, as `package.json` states it. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', DIST), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
