/** Prints the section of CHANGELOG.md about the version that is released. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { asProgram } from './command.mjs';
import { VERSION } from './platforms.mjs';

await asProgram(import.meta.url, () => {
  const sections = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m);
  const section = sections.find((text) => /^[^\s,]+/.exec(text)?.[0] === VERSION);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section ${VERSION}`);
  process.stdout.write(`${section.split('\n').slice(1).join('\n').trim()}\n`);
});
