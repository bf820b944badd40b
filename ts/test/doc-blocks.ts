/** The code blocks of the documentation. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY } from './addon/model-folders.ts';

export interface DocBlock {
  /** The text behind the opening fence; empty if there is none. */
  readonly language: string;
  readonly text: string;
  /** The paragraph before the block; empty if another block stands there. */
  readonly before: string;
}

/** Returns all code blocks of a page, in their order. */
export function docBlocks(page: string): DocBlock[] {
  const content = readFileSync(join(REPOSITORY, 'docs', page), 'utf8').replaceAll('\r\n', '\n');
  const blocks = content.matchAll(/^```(?<language>.*)\n(?<text>[\s\S]*?)^```$/gm);
  let end = 0;
  return [...blocks].map(({ groups: { language = '', text = '' } = {}, index, 0: whole }) => {
    const before = content.slice(end, index).trim().split(/\n\n+/).at(-1) ?? '';
    end = index + whole.length;
    return { language, text, before };
  });
}
