/** The code blocks of the documentation. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from './addon/model-folders.ts';

export interface DocBlock {
  /** The text behind the opening fence; empty if there is none. */
  readonly language: string;
  readonly text: string;
}

/** Returns all code blocks of a page, in their order. */
export function docBlocks(page: string): DocBlock[] {
  const content = readFileSync(join(REPOSITORY, 'docs', page), 'utf8').replaceAll('\r\n', '\n');
  const blocks = content.matchAll(/^```(?<language>.*)\n(?<text>[\s\S]*?)^```$/gm);
  return [...blocks].map(({ groups: { language = '', text = '' } = {} }) => ({ language, text }));
}
